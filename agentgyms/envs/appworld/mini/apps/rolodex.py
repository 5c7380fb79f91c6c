"""The rolodex app: contacts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from agentgyms.envs.appworld.mini.api import PAGE, ApiError, App, Plain, Session, matches, page
from agentgyms.envs.appworld.mini.parameters import Day, Email, Integer, Text
from agentgyms.envs.appworld.mini.records import Contact, RolodexAccount

ROLODEX: Final = App(
    "rolodex", "Keeps contacts: who they are to you and how to reach them.", RolodexAccount
)

_CONTACT_ID: Final = Integer("contact_id", "Id of the contact.")
_CONTACT: Final = {
    "contact_id": 1,
    "name": "string",
    "email": "someone@example.org",
    "phone": "string",
    "relation": "string",
    "birthday": "2000-01-31",
}


@ROLODEX.api(
    "List your contacts, by name; a birthday that is not known is None.",
    Text("query", "Words that the name, email or phone must have; any case.", default=""),
    Text("relation", "Only contacts with this relation, such as friend; any case.", default=None),
    *PAGE,
    returns=[_CONTACT],
)
def search_contacts(
    session: Session, query: str, relation: str | None, page_index: int, page_limit: int
) -> Plain:
    """Return a page of contacts."""
    found = [
        contact
        for contact in session.mine(Contact)
        if (relation is None or contact.relation.lower() == relation.lower())
        and matches(query, contact.name, contact.email, contact.phone)
    ]
    found.sort(key=lambda contact: (contact.name, contact.contact_id))
    return [contact.reply(_CONTACT) for contact in page(found, page_index, page_limit)]


@ROLODEX.api(
    "Show one of your contacts; a birthday that is not known is None.",
    _CONTACT_ID,
    returns=_CONTACT,
)
def show_contact(session: Session, contact_id: int) -> Plain:
    """Return the contact."""
    return session.find_mine(Contact, contact_id, "contact").reply(_CONTACT)


@ROLODEX.api(
    "Add a contact.",
    Text("name", "First and last name.", shortest=1),
    Email("email", "Email; no other of your contacts may have it."),
    Text("phone", "Phone number.", default="", longest=50),
    Text("relation", "Who it is to you, such as friend.", default="", longest=50),
    Day("birthday", "Day of birth.", default=None),
    returns={"message": "string", "contact_id": 1},
)
def add_contact(
    session: Session, name: str, email: str, phone: str, relation: str, birthday: str | None
) -> Plain:
    """Return the new contact's id."""
    _check_email(session, email)
    contact = session.new(
        Contact,
        account_id=session.me,
        name=name,
        email=email,
        phone=phone,
        relation=relation,
        birthday=birthday,
    )
    return {"message": "The contact was added.", "contact_id": contact.contact_id}


@ROLODEX.api(
    "Change parts of one of your contacts; what is not given stays as it is.",
    _CONTACT_ID,
    Text("name", "New name.", default=None, shortest=1),
    Email("email", "New email; no other of your contacts may have it.", default=None),
    Text("phone", "New phone number.", default=None, longest=50),
    Text("relation", "New relation.", default=None, longest=50),
    Day("birthday", "New day of birth.", default=None),
    returns={"message": "string"},
)
def update_contact(session: Session, contact_id: int, **changes: Any) -> Plain:
    """Return a message."""
    contact = session.find_mine(Contact, contact_id, "contact")
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise ApiError(422, "Nothing to change: give name, email, phone, relation or birthday.")
    if given.get("email", contact.email) != contact.email:
        _check_email(session, given["email"])
    session.database.replace(replace(contact, **given))
    return {"message": "The contact was changed."}


@ROLODEX.api("Delete one of your contacts.", _CONTACT_ID, returns={"message": "string"})
def delete_contact(session: Session, contact_id: int) -> Plain:
    """Return a message."""
    session.database.remove(session.find_mine(Contact, contact_id, "contact"))
    return {"message": "The contact was deleted."}


def _check_email(session: Session, email: str) -> None:
    if any(contact.email == email for contact in session.mine(Contact)):
        raise ApiError(409, f"You have a contact with the email {email} already.")
