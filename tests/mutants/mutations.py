"""Small changes of a module's source, each of which some test should notice.

The changes are cosmic-ray's; of its replacements of an operator one is kept, for others are noticed
by the same tests. It removes no statements: `RemoveStatement` does.
"""

import ast
import difflib
from functools import lru_cache
from typing import NamedTuple

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Keyword

BINARY = (
    "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul",
    "RShift_LShift", "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr",
)  # fmt: skip
COMPARISONS = (
    "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is",
)  # fmt: skip
OTHERS = (
    "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Invert",
    "ReplaceUnaryOperator_Delete_Not", "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak",
    "ExceptionReplacer", "NumberReplacer", "ZeroIterationForLoop",
)  # fmt: skip


class Mutant(NamedTuple):
    """A changed source: its first line that differs, and what stands there before and after."""

    line: int
    before: str
    after: str
    code: str


class RemoveStatement(Operator):
    """Replaces a statement that acts on something by `pass`."""

    def mutation_positions(self, node):
        if node.type == "simple_stmt" and _acts(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        statement = node.children[0]
        prefix = statement.get_first_leaf().prefix
        node.children[0] = Keyword("pass", statement.start_pos, prefix=prefix)
        return node

    @classmethod
    def examples(cls):
        return ()


def _acts(statement):
    """Return whether a statement is a call, raises, deletes, or changes what exists already."""
    if statement.type in ("raise_stmt", "del_stmt"):
        return True
    if statement.type == "expr_stmt":
        target, operator = statement.children[:2]
        if operator.type == "annassign":
            return False
        return target.type in ("atom_expr", "power") or operator.get_code().strip() != "="
    return statement.type in ("atom_expr", "power") and statement.children[-1].type == "trailer"


def operators():
    known = OperatorProvider()
    names = [f"ReplaceBinaryOperator_{pair}" for pair in BINARY]
    names += [f"ReplaceComparisonOperator_{pair}" for pair in COMPARISONS]
    return [RemoveStatement(), *(known[name]() for name in (*names, *OTHERS))]


def places(source):
    """Return an operator and a number for each place where one can act, as `mutant` takes them."""
    tree, found = get_ast(source), []
    for operator in operators():
        counter = Counter(operator)
        counter.walk(tree)
        found += [(operator, number) for number in range(counter.count)]
    return found


def mutant(source, operator, number):
    """Return the mutant of a place; None if it is no Python or means the same."""
    code = mutate_code(source, operator, number)
    if _meaning(code) in (None, _meaning(source)):
        return None
    old, new = source.splitlines(), code.splitlines()
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    _, first, end, new_first, new_end = next(change for change in changes if change[0] != "equal")
    before, after = old[first:end], new[new_first:new_end]
    return Mutant(first + 1, "\n".join(before).strip(), "\n".join(after).strip(), code)


class Counter(Visitor):
    """Counts the places where an operator can act."""

    def __init__(self, operator):
        self.operator, self.count = operator, 0

    def visit(self, node):
        self.count += len(list(self.operator.mutation_positions(node)))
        return node


class _Meaning(ast.NodeTransformer):
    """Takes away annotations, which nothing reads where the module defers them, and cache sizes.

    The bare star of a signature counts as its slash, which it is no operator to become.
    """

    def visit_keyword(self, node):
        return (
            ast.keyword("maxsize", ast.Constant(None))
            if node.arg == "maxsize"
            else self.generic_visit(node)
        )

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_arguments(self, node):
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        node.defaults = [*node.defaults, *filter(None, node.kw_defaults)]
        node.posonlyargs = node.kwonlyargs = node.kw_defaults = []
        return self.generic_visit(node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


@lru_cache(maxsize=4)
def _meaning(source):
    """Return the syntax tree of a source as `_Meaning` leaves it; None if it is no Python."""
    try:
        return ast.dump(_Meaning().visit(ast.parse(source)))
    except SyntaxError:
        return None
