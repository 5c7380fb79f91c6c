"""The scenarios of MiniAppWorld."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.appworld.mini.scenarios import (
    debts,
    jukebox,
    lists,
    notebook,
    people,
    planner,
    purse,
)

COMMON: Final = (
    notebook.count_notes,
    notebook.pay_back,
    debts.split_bill,
    jukebox.longest_song,
    purse.sent_total,
    people.top_receiver,
    purse.balance_after,
    purse.approve_requests,
    debts.collect_debts,
    notebook.delete_note,
    jukebox.liked_playlist,
    people.decline_requests,
    jukebox.like_song,
    jukebox.liked_seconds,
    jukebox.move_songs,
    people.add_contact,
    notebook.retag_notes,
    people.birthday_gifts,
)
"""Templates of train, dev and test_normal; the difficulties alternate."""

CHALLENGE: Final = (
    planner.open_todos,
    planner.finish_list,
    planner.birthday_events,
    planner.cancel_event,
    planner.busiest_day,
    lists.note_todos,
    jukebox.rename_playlist,
    purse.top_up_to,
    lists.song_list,
)
"""Templates of test_challenge alone; the difficulties alternate."""
