"""Renders the chart with Helm's library and checks what comes of it by Kubernetes' schemas.

A program for AGENTGYMS_DEPLOY_PYTHON: reads a list of values (JSON) from standard input, and writes
one object for each: the `manifests`, the `notes`, and the `error` of Helm, "" if there is none.
"""

import json
import sys

import helm_python as helm
import kubernetes_validate
import yaml

VERSIONS = ("1.27", "1.37")
"""The oldest version of Kubernetes that the chart is for, and the newest with schemas."""


def render(path, values):
    """Return what Helm makes of the chart in a folder; its linter and the schemas agree to it."""
    try:
        files = helm.Chart.load(path).render(values, name="gyms", namespace="lab")
    except helm.HelmError as e:
        return {"manifests": [], "notes": "", "error": str(e)}
    notes = "".join(text for name, text in files.items() if name.endswith("NOTES.txt"))
    manifests = [
        manifest
        for name, text in files.items()
        if name.endswith(".yaml")
        for manifest in yaml.safe_load_all(text)
        if manifest
    ]
    for manifest in manifests:
        for version in VERSIONS:
            kubernetes_validate.validate(manifest, version, strict=True)
    report = helm.lint(path, values, strict=True)
    return {"manifests": manifests, "notes": notes, "error": "; ".join(report["errors"])}


if __name__ == "__main__":
    json.dump([render(sys.argv[1], values) for values in json.load(sys.stdin)], sys.stdout)
