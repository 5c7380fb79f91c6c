"""Code blocks that the reference solutions share."""

from __future__ import annotations

from agentgyms.envs.appworld.mini.template import quoted

_PASSWORDS = (
    'passwords = {a["account_name"]: a["password"] '
    "for a in apis.supervisor.show_account_passwords()}"
)
_EMAIL = 'apis.supervisor.show_profile()["email"]'


def show_docs(app: str, *apis: str) -> str:
    """Return the block that prints an app's API descriptions, or the docs of some of its APIs."""
    if not apis:
        return f'print(apis.api_docs.show_api_descriptions(app_name="{app}"))'
    return "\n".join(
        f'print(apis.api_docs.show_api_doc(app_name="{app}", api_name="{api}"))' for api in apis
    )


def begin(**apis: str) -> list[str]:
    """Return the blocks that print API docs and log in: `begin(purse="show_cards top_up")`."""
    docs = "\n".join(show_docs(app, *names.split()) for app, names in apis.items() if names)
    first = [show_docs(app) for app in apis if len(apis) == 1]
    return [*first, *([docs] if docs else []), login(*apis)]


def show_note_titled(title: str) -> str:
    """Return the block that finds the note with a title and prints it, as `note`."""
    return (
        "notes = apis.notebook.search_notes("
        f"access_token=notebook_token, query={quoted(title)}, page_limit=20)\n"
        f'note_id = next(n["note_id"] for n in notes if n["title"] == {quoted(title)})\n'
        "note = apis.notebook.show_note(access_token=notebook_token, note_id=note_id)\n"
        'print(note["content"])'
    )


def contacts_who_are(relation: str) -> str:
    """Return the lines that put the contacts of a relation into the list `contacts`."""
    return (
        "contacts = apis.rolodex.search_contacts("
        f'access_token=rolodex_token, relation="{relation}", page_limit=20)\n'
    )


def login(*apps: str) -> str:
    """Return the block that logs into apps: into `token`, or `<app>_token` if there are several."""
    names = ["token"] if len(apps) == 1 else [f"{app}_token" for app in apps]
    return "\n".join(
        [
            _PASSWORDS,
            *(
                f"{name} = apis.{app}.login(username={_EMAIL}, "
                f'password=passwords["{app}"])["access_token"]'
                for name, app in zip(names, apps, strict=True)
            ),
        ]
    )


def pages(name: str, call: str) -> str:
    """Return the lines that put all pages of a call (not closed) into the list `name`."""
    return (
        f"{name}, page = [], 0\n"
        f"while batch := {call}, page_index=page, page_limit=20):\n"
        f"    {name} += batch\n"
        f"    page += 1"
    )


def finish(answer: str = "") -> str:
    """Return the block that completes the task, with an expression for the answer if it asks."""
    return f"apis.supervisor.complete_task({f'answer={answer}' if answer else ''})"
