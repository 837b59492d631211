import { appendAll } from '@wheelhouse/machinery';
import { check } from './checker.ts';
import { estimatedCost } from './cost/cost.ts';
import { type Program, program } from './evaluator.ts';
import { CelCompileError, type Issue } from './issues.ts';
import { timestamp } from './library/arithmetic.ts';
import { type FormatArgument, formatIssue } from './library/format-text.ts';
import { patternOf } from './library/strings.ts';
import { parseDuration, parseTimestamp } from './library/times.ts';
import type { CallExpr, Expr, Literal } from './syntax/ast.ts';
import { parse } from './syntax/parser.ts';
import type { Environment } from './types/environment.ts';
import type { DeclaredSize } from './types/schema-types.ts';
import { dynType, isEquivalent, showType, type Type } from './types/types.ts';

/** A parsed and type-checked expression. */
export interface Compiled {
  readonly type: Type;
  /** Used variables of the environment. */
  readonly used: ReadonlySet<string>;
  /** Creates the program. Throws `CelError` if constants alone prove a failure. */
  program(): Program;
  /** Estimates the maximum cost in units of the runtime limit for a `self` of these sizes. */
  costMax(self: DeclaredSize | undefined): number;
}

/** Compiles an expression. Throws `CelCompileError` with all issues and their positions. */
export function compile(source: string, environment: Environment): Compiled {
  const expr: Expr = parse(source, environment);
  const checked = check(expr, environment);
  const issues = checked.issues.length > 0 ? checked.issues : literalIssues(expr, checked.types);
  if (issues.length > 0) throw new CelCompileError(source, issues);
  return {
    type: checked.type,
    used: checked.used,
    program: () => program(expr, { environment, declared: checked.overloads }),
    costMax: (self) => estimatedCost(expr, { checked, functions: environment.functions, self }),
  };
}

/**
 * The issues of literals in a type-checked expression: invalid times, patterns, and formats; lists
 * and maps with elements of several types. `types` are those of the subexpressions.
 */
function literalIssues(expr: Expr, types: Types): readonly Issue[] {
  const issues: Issue[] = [];
  const visit = (node: Expr, isFormatted: boolean): void => {
    const issue = node.kind === 'call' ? callIssue(node, types) : undefined;
    if (issue !== undefined) issues.push(issue);
    if (!isFormatted) appendAll(issues, mixedIssues(node, types));
    // Arguments of a format may have different types.
    const inside = isFormatted || (node.kind === 'call' && node.name === 'format');
    for (const child of childrenOf(node)) visit(child, inside);
  };
  visit(expr, false);
  return issues;
}

/**
 * Elements whose type differs from the first one's: the first such element of a list, all of a map.
 */
function mixedIssues(node: Expr, types: Types): readonly Issue[] {
  if (node.kind === 'list') return differences(node.items, types).slice(0, 1);
  if (node.kind !== 'map') return [];
  const keys = node.entries.map(({ key }) => ({ value: key, optional: false }));
  return [...differences(keys, types), ...differences(node.entries, types)];
}

function differences(
  elements: readonly { readonly value: Expr; readonly optional: boolean }[],
  types: Types,
): readonly Issue[] {
  const shown = elements.map(({ value, optional }) => {
    const type = types.get(value) ?? dynType;
    return optional ? (type.args[0] ?? dynType) : type;
  });
  const [first] = shown;
  if (first === undefined) return [];
  return shown.flatMap((type, index) => {
    if (isEquivalent(type, first)) return [];
    const message = `expected type '${showType(first)}' but found '${showType(type)}'`;
    return [{ at: elements[index]?.value.at ?? 0, message }];
  });
}

type Types = ReadonlyMap<Expr, Type>;

function callIssue(call: CallExpr, types: Types): Issue | undefined {
  const { name, args } = call;
  if (name === 'format' && call.target !== undefined) return formatIssueOf(call, types);
  const [first] = args;
  if (first?.kind !== 'const') return undefined;
  const { value, at } = first;
  const isRight = Object.hasOwn(readers, name) ? readers[name]?.(value) : true;
  return isRight === false ? { at, message: `invalid ${name} argument` } : undefined;
}

/**
 * Validators of literals by the function whose first argument they are. For `matches` that is the
 * pattern of the member function and the text of the global one; cel-go validates both as a
 * pattern.
 */
const readers: Readonly<Record<string, (value: Literal) => boolean>> = {
  timestamp(value) {
    if (typeof value === 'bigint') return canBe(() => timestamp(value * 1_000_000_000n));
    return typeof value !== 'string' || parseTimestamp(value) !== undefined;
  },
  duration: (value) => typeof value !== 'string' || parseDuration(value) !== undefined,
  matches: (value) => typeof value !== 'string' || canBe(() => patternOf(value)),
};

function canBe(make: () => unknown): boolean {
  try {
    make();
    return true;
  } catch {
    return false;
  }
}

function formatIssueOf({ target, args, at }: CallExpr, types: Types): Issue | undefined {
  const [list] = args;
  if (target?.kind !== 'const' || typeof target.value !== 'string') return undefined;
  if (list?.kind !== 'list' || args.length !== 1) return undefined;
  const argument = (expr: Expr): FormatArgument => ({
    at: expr.at,
    type: types.get(expr) ?? dynType,
    parts: partsOf(expr).map(argument),
  });
  return formatIssue(target.value, partsOf(list).map(argument), at);
}

function partsOf(expr: Expr): readonly Expr[] {
  return expr.kind === 'list' || expr.kind === 'map' ? childrenOf(expr) : [];
}

function childrenOf(node: Expr): readonly Expr[] {
  switch (node.kind) {
    case 'const':
    case 'ident':
      return [];
    case 'select':
      return [node.operand];
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args];
    case 'list':
      return node.items.map(({ value }) => value);
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case 'struct':
      return node.fields.map(({ value }) => value);
    case 'fold':
      return [node.range, ...(node.filter === undefined ? [] : [node.filter]), node.body];
    case 'optionalMap':
      return [node.target, node.body];
    case 'bind':
      return [node.value, node.body];
  }
}
