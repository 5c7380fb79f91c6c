; The rules of the household games that agentgyms writes, for planners and for the official engine.
; They are ALFWorld's rules as a player can notice them; names of predicates and actions, and the
; parameters that the wording mentions, are those that alfworld looks for.
(define (domain alfred)
  (:requirements :adl :typing)
  (:types agent location receptacle object rtype otype)
  (:constants
    SinkBasinType MicrowaveType FridgeType - rtype
    KnifeType ButterKnifeType - otype)
  (:predicates
    (atLocation ?a - agent ?l - location)
    (receptacleAtLocation ?r - receptacle ?l - location)
    (objectAtLocation ?o - object ?l - location)
    (receptacleType ?r - receptacle ?t - rtype)
    (objectType ?o - object ?t - otype)
    (canContain ?rt - rtype ?ot - otype)
    (openable ?r - receptacle)
    (opened ?r - receptacle)
    (inReceptacle ?o - object ?r - receptacle)
    (isReceptacleObject ?o - object)
    (inReceptacleObject ?inner - object ?outer - object)
    (holds ?a - agent ?o - object)
    (holdsAny ?a - agent)
    (pickupable ?o - object)
    (cleanable ?o - object)
    (heatable ?o - object)
    (coolable ?o - object)
    (sliceable ?o - object)
    (toggleable ?o - object)
    (isClean ?o - object)
    (isHot ?o - object)
    (isCool ?o - object)
    (isSliced ?o - object)
    (isToggled ?o - object)
    (asked ?a - agent))                ; written by commands that change nothing, never read

  ; --- asking -----------------------------------------------------------------------------------
  ; An action without any effect would be dropped, hence `asked`.

  (:action look
    :parameters (?a - agent ?l - location)
    :precondition (atLocation ?a ?l)
    :effect (asked ?a))

  (:action inventory
    :parameters (?a - agent)
    :precondition ()
    :effect (asked ?a))

  (:action help
    :parameters (?a - agent)
    :precondition ()
    :effect (asked ?a))

  (:action examineReceptacle
    :parameters (?a - agent ?r - receptacle ?l - location)
    :precondition (and (receptacleAtLocation ?r ?l) (atLocation ?a ?l))
    :effect (asked ?a))

  (:action examineObject
    :parameters (?a - agent ?o - object)
    :precondition (holds ?a ?o)
    :effect (asked ?a))

  ; --- moving about -----------------------------------------------------------------------------
  ; Going to where one already is has no effect and is dropped.

  (:action GotoLocation
    :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
    :precondition (and (receptacleAtLocation ?r ?lEnd) (atLocation ?a ?lStart))
    :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd)))

  (:action OpenObject
    :parameters (?a - agent ?l - location ?r - receptacle)
    :precondition (and
      (openable ?r) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (not (opened ?r)))
    :effect (opened ?r))

  (:action CloseObject
    :parameters (?a - agent ?l - location ?r - receptacle)
    :precondition (and
      (openable ?r) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (opened ?r))
    :effect (not (opened ?r)))

  ; --- carrying ---------------------------------------------------------------------------------

  (:action PickupObject
    :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
    :precondition (and
      (pickupable ?o) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?o ?r)
      (or (not (openable ?r)) (opened ?r)) (not (holdsAny ?a)))
    :effect (and
      (holds ?a ?o) (holdsAny ?a)
      (not (inReceptacle ?o ?r)) (not (objectAtLocation ?o ?l))))

  (:action PutObject
    :parameters (?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype)
    :precondition (and
      (canContain ?rt ?ot) (receptacleType ?r ?rt) (objectType ?o ?ot)
      (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (holds ?a ?o)
      (or (not (openable ?r)) (opened ?r)))
    :effect (and
      (inReceptacle ?o ?r) (objectAtLocation ?o ?l)
      (not (holds ?a ?o)) (not (holdsAny ?a))))

  ; --- treating ---------------------------------------------------------------------------------

  (:action CleanObject
    :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
    :precondition (and
      (cleanable ?o) (receptacleType ?r SinkBasinType)
      (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (holds ?a ?o))
    :effect (isClean ?o))

  (:action HeatObject
    :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
    :precondition (and
      (heatable ?o) (receptacleType ?r MicrowaveType)
      (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (holds ?a ?o))
    :effect (and (isHot ?o) (not (isCool ?o))))

  (:action CoolObject
    :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
    :precondition (and
      (coolable ?o) (receptacleType ?r FridgeType)
      (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (holds ?a ?o))
    :effect (and (isCool ?o) (not (isHot ?o))))

  (:action SliceObject
    :parameters (?a - agent ?l - location ?co - object ?ko - object)
    :precondition (and
      (sliceable ?co) (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType))
      (atLocation ?a ?l) (objectAtLocation ?co ?l) (holds ?a ?ko))
    :effect (isSliced ?co))

  ; A lamp is switched on and stays on.
  (:action ToggleObject
    :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
    :precondition (and
      (toggleable ?o) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?o ?r))
    :effect (isToggled ?o)))
