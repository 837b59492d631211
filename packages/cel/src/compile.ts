import { appendAll, itemAt, runInOnePiece, succeeds } from '@wheelhouse/machinery';
import { parseGoDuration } from '@wheelhouse/schema';
import { type Checked, checkSteps } from './checker.ts';
import { costSteps } from './cost/cost.ts';
import { type Program, programSteps } from './evaluator.ts';
import { CelCompileError, type Issue } from './issues.ts';
import { timestamp } from './library/arithmetic.ts';
import { type FormatArgument, formatIssue } from './library/format-text.ts';
import { checkLiteralPattern } from './library/strings.ts';
import { parseTimestamp } from './library/times.ts';
import { passFor } from './passes.ts';
import { type CallExpr, type Expr, type ListItem, type Literal, operandsOf } from './syntax/ast.ts';
import { parseSteps } from './syntax/parser.ts';
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
  /** `program` in steps. */
  programSteps(): Generator<void, Program>;
  /** Estimates the maximum cost in units of the runtime limit for a `self` of these sizes. */
  costMax(self: DeclaredSize | undefined): number;
  /** `costMax` in steps. */
  costSteps(self: DeclaredSize | undefined): Generator<void, number>;
}

/** `compileSteps` in one piece, for callers that delay no other request. */
export function compile(source: string, environment: Environment): Compiled {
  return runInOnePiece(compileSteps(source, environment));
}

/**
 * Compiles an expression, in steps if it is long (TRUST-2). Throws `CelCompileError` with all
 * issues and their positions.
 */
export function* compileSteps(source: string, environment: Environment): Generator<void, Compiled> {
  const expr = yield* parseSteps(source, environment);
  const checked = yield* checkSteps(expr, environment, passFor(source));
  const issues =
    checked.issues.length > 0
      ? checked.issues
      : yield* literalIssues(expr, checked.types, environment);
  if (issues.length > 0) throw new CelCompileError(source, issues);
  const { functions } = environment;
  const programOf = () => programSteps(expr, { source, environment, checked });
  const costOf = (self: DeclaredSize | undefined) =>
    costSteps(expr, { checked, functions, self, pass: passFor(source) });
  return {
    type: checked.type,
    used: checked.used,
    program: () => runInOnePiece(programOf()),
    programSteps: programOf,
    costMax: (self) => runInOnePiece(costOf(self)),
    costSteps: costOf,
  };
}

/** Maximum number of reports of an issue in targets of `optMap`; cel-go has no limit. */
const timesMax = 8;

/** Subexpressions whose literals one step validates. */
const nodesPerStep = 3_000;

/**
 * The issues of literals in a type-checked expression, in steps: invalid times, patterns, and
 * formats; lists and maps with elements of several types. `types` are those of the subexpressions.
 */
function* literalIssues(
  expr: Expr,
  types: Types,
  environment: Environment,
): Generator<void, readonly Issue[]> {
  const issues: (readonly Issue[])[] = [];
  const formatIssues: (readonly Issue[])[] = [];
  const open = [{ node: expr, isFormatted: false, times: 1 }];
  let left = nodesPerStep;
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const { node, isFormatted, times } = at;
    const issue = node.kind === 'call' ? callIssue(node, types, environment) : undefined;
    const found = issue === undefined ? [] : [issue];
    if (!isFormatted) appendAll(found, yield* mixedIssues(node, types));
    const isFormat = node.kind === 'call' && node.name === 'format';
    const reported = isFormat ? formatIssues : issues;
    for (let time = 0; time < times && found.length > 0; time += 1) reported.push(found);
    // Arguments of a format may have different types.
    const inside = isFormatted || isFormat;
    const operands = operandsOf(node);
    for (let index = operands.length - 1; index >= 0; index -= 1) {
      const operand = itemAt(operands, index);
      // The macro that cel-go expands repeats its target.
      const isRepeated = node.kind === 'optionalMap' && operand === node.target;
      const operandTimes = isRepeated ? Math.min(2 * times, timesMax) : times;
      open.push({ node: operand, isFormatted: inside, times: operandTimes });
    }
    left -= issueWork(node);
    if (left <= 0) {
      left = nodesPerStep;
      yield;
    }
  }
  // At one position, cel-go reports an inner expression first, and issues of formats last.
  return [...issues.reverse(), ...formatIssues.reverse()].flat();
}

/** The work of finding the issues of a node, compared with that of an operator. */
const issueWork = (node: Expr) =>
  node.kind === 'call' && node.name === 'matches' ? nodesPerStep : 1;

/**
 * Elements whose type differs from the first one's: the first such element of a list, all of a map.
 */
function* mixedIssues(node: Expr, types: Types): Generator<void, readonly Issue[]> {
  if (node.kind !== 'list' && node.kind !== 'map') return [];
  const elementWork = 1 + (types.get(node)?.inner ?? 0) / 10;
  if (node.kind === 'list') {
    return (yield* differences(node.items, { types, elementWork })).slice(0, 1);
  }
  const keys = node.entries.map(({ key }) => ({ value: key, optional: false }));
  return [
    ...(yield* differences(keys, { types, elementWork })),
    ...(yield* differences(node.entries, { types, elementWork })),
  ];
}

/** Elements of which one step compares the types, which takes longer than visiting a node. */
const elementsPerStep = 1_000;

/** The issues of elements whose type is not that of the first. */
function* differences(
  elements: readonly ListItem[],
  { types, elementWork }: { readonly types: Types; readonly elementWork: number },
): Generator<void, readonly Issue[]> {
  const issues: Issue[] = [];
  let first: Type | undefined;
  let left = elementsPerStep;
  for (const { value, optional } of elements) {
    const whole = types.get(value) ?? dynType;
    const type = optional ? (whole.args[0] ?? dynType) : whole;
    first ??= type;
    if (!isEquivalent(type, first)) {
      const message = `expected type '${showType(first)}' but found '${showType(type)}'`;
      issues.push({ at: value.at, message });
    }
    left -= elementWork;
    if (left > 0) continue;
    left = elementsPerStep;
    yield;
  }
  return issues;
}

type Types = Checked['types'];

function callIssue(call: CallExpr, types: Types, environment: Environment): Issue | undefined {
  const { name, args } = call;
  if (name === 'format' && call.target !== undefined) return formatIssueOf(call, types);
  const [first] = args;
  if (first?.kind !== 'const') return undefined;
  const { value, at } = first;
  const isRight = Object.hasOwn(readers, name) ? readers[name]?.(value, environment) : true;
  return isRight === false ? { at, message: `invalid ${name} argument` } : undefined;
}

/**
 * Validators of literals by the function whose first argument they are. For `matches` that is the
 * pattern of the member function and the text of the global one; cel-go validates both as a
 * pattern.
 */
const readers: Readonly<Record<string, (value: Literal, environment: Environment) => boolean>> = {
  timestamp(value) {
    if (typeof value === 'bigint') return succeeds(() => timestamp(value * 1_000_000_000n));
    const nanos = typeof value === 'string' ? parseTimestamp(value) : 0n;
    return nanos !== undefined && succeeds(() => timestamp(nanos));
  },
  // A duration of an integer is declared, and fails at run time.
  duration(value) {
    return typeof value === 'string'
      ? parseGoDuration(value) !== undefined
      : typeof value !== 'bigint';
  },
  matches: (value, environment) =>
    typeof value !== 'string' || succeeds(() => checkLiteralPattern(value, environment)),
};

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
  return expr.kind === 'list' || expr.kind === 'map' ? operandsOf(expr) : [];
}
