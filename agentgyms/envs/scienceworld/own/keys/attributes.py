"""Which attributes of the game's classes are state: the tables that keys and forks go by."""

from __future__ import annotations

from typing import Final

# --- objects of the game -------------------------------------------------------------------------

PLAIN: Final = (
    "name",
    "_hidden",
    "voltage",
    "title",
    "contents",
    "subject",
    "artist",
    "sandwich_type",
    "author",
    "angle_deg",
    "additional_name",
    "stopwatch_cur_time",
    "stopwatch_user_time",
    "toilet_flush_stage",
    "waiting_counter",
)
"""Texts, numbers and truth values."""

REFERENCES: Final = (
    "_container",
    "terminal1",
    "terminal2",
    "parent_object",
    "anode",
    "cathode",
    "air",
    "ground",
    "drain",
    "drawer",
    "mattress",
    "pillow",
    "inventory",
    "from_end",
    "to_end",
    "parent_plant",
)
"""Other objects, or None."""

SETS: Final = ("_contained", "_portals")
"""Sets of other objects, or None."""

PARTS: Final = (
    "prop_material",
    "prop_container",
    "prop_device",
    "prop_edibility",
    "prop_heat_source",
    "prop_cooling_source",
    "prop_portal",
    "prop_electrical_connection",
    "prop_life",
    "prop_chromosome_pairs",
    "prop_pollination",
    "lifecycle",
    "surface_material",
)
"""What belongs to one object only."""

SPECIAL: Final = ("_positions", "_action_history")
"""What keys and forks have code of their own for."""

ALIASES: Final = {
    "edibility": "prop_edibility",
    "pollination": "prop_pollination",
    "genes": "prop_chromosome_pairs",
}
"""Second names of parts."""

CONSTANT: Final = (
    "uuid",  # decides nothing in play but where things are on planes, which keys hold by things
    "world",
    "obj_type",
    "color",
    "display_on_off",
    "task_description_str",
    "prop_moveable",
)
"""What the class and the variation decide, and play never changes."""

NOT_STATE: Final = (
    "_ticking",  # caches
    "_turn",  # asked for within a turn only
    "deleted",  # asked for by solutions only
)
"""What decides nothing in the turns to come."""

FOR_THINGS: Final = frozenset(
    (*PLAIN, *REFERENCES, *SETS, *PARTS, *SPECIAL, *ALIASES, *CONSTANT, *NOT_STATE)
)

# --- everything else, by the name of the class ---------------------------------------------------

STATE: Final[dict[str, tuple[str, ...]]] = {
    "MaterialProperties": (
        "temperature_c",
        "state_of_matter",
        "is_combusting",
        "has_combusted",
        "combustion_ticks",
        "melting_point",
        "electrically_conductive",
        "substance_name",
        "name_in_state_of_matter",
    ),
    "ContainerProperties": ("is_container", "is_open", "is_closable"),
    "DeviceProperties": ("is_activable", "is_activated", "is_broken", "is_usable"),
    "EdibilityProperties": ("is_edible", "is_poisonous"),
    "HeatSourceProperties": ("cur_set_temp", "max_temp"),
    "CoolingSourceProperties": ("cur_set_temp", "min_temp"),
    "PortalProperties": ("is_open", "is_openable"),
    "ElectricalConnectionProperties": ("connected_to",),
    "LifeProperties": ("is_dead", "is_sickly"),
    "ChromosomePair": ("parent1", "parent2"),
    "Chromosomes": ("chromosomes",),
    "GeneticTrait": (
        "trait_name",
        "dominant_or_recessive",
        "value_dominant",
        "value_recessive",
        "str_suffix",
    ),
    "PollinationProperties": ("pollination_step", "parent2_chromosome_pairs"),
    "LifeCycle": ("cur_stage_index", "stages"),
    "LifeStage": (),
    "GrowingStage": ("ticks_meeting_criteria", "next_stage"),
    "PlantStage": ("ticks_meeting_criteria",),
    "GrowingPlantStage": (
        "duration_without_water",
        "duration_without_soil",
        "duration_out_of_temperature",
    ),
    "ObjectSet": ("_ring", "_bits"),
    "MutableSet": ("_places", "_bits"),
    "JavaRandom": ("state",),
    "SimplifierProcessor": ("simplifications",),
    "World": ("random", "simplifier", "search_patterns"),
    "InputParser": ("ambiguous",),
    "ObjMonitor": ("_focus",),
    "GoalSequence": (
        "cur_subgoal_idx",
        "failed",
        "reached",
        "last_satisfied_with_object",
        "stored_values",
        "completed_keys",
        "subgoals",
        "unordered",
    ),
    "Goal": (),
    "_PastAction": ("activated_at_step",),
    "_TemperatureChange": ("initial_temperature",),
    "GoalMoveToNewLocation": ("starting_location",),
    "GoalStayInLocation": ("num_ticks_in_location",),
    "Game": ("world", "universe", "agent", "_error", "_parser", "_context", "_maker"),
    "TaskMaker1": ("task_name", "variation_idx"),
}
"""What a class adds to the state that its bases have."""

SAME: Final[dict[str, tuple[str, ...]]] = {
    "PortalProperties": ("connects_from", "connects_to", "is_lockable", "is_locked"),
    "LifeProperties": ("lifeform_type", "lifespan_typical", "max_temp", "min_temp"),
    "ChromosomePair": ("phenotypes",),  # follow from the genes
    "PollinationProperties": ("steps_until_fruiting_body_forms",),
    "LifeCycle": ("life_cycle_name",),
    "LifeStage": ("_canonical_name", "lifecycle", "obj", "stage_name"),
    "GrowingStage": ("stage_duration",),
    "PlantStage": ("plant",),
    "ObjectSet": ("_shown",),
    "MutableSet": ("_known",),
    "World": ("count", "turn", "pass_time"),
    "InputParser": ("_commands",),
    # The focus of a goal is asked for only right after it was set.
    "Goal": ("defocus_on_success", "description", "key", "prerequisites", "satisfied_with_object"),
    "GoalPastActionExamineObject": ("name",),
    "GoalPastActionReadObject": ("name",),
    "GoalPastActionUseObjectOnObject": ("device", "patient"),
    "_TemperatureChange": ("degrees",),
    "GoalMoveToNewLocation": ("unless",),
    "GoalStayInLocation": ("place", "steps"),
    "Game": ("_task", "_history", "score", "completed", "moves"),
    "TaskMaker1": ("world", "task", "modifiers"),
}
"""What a class has besides: what its variation decides for good, caches, what nobody asks for.

All attributes of goals that are not named here are of this kind.
"""
