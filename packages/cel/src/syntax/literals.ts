import { appendAll } from '@wheelhouse/machinery';
import type { Issue } from '../issues.ts';
import { timestamp } from '../library/arithmetic.ts';
import { type FormatArgument, formatIssue } from '../library/format-text.ts';
import { patternOf } from '../library/strings.ts';
import { parseDuration, parseTimestamp } from '../library/time-text.ts';
import { dynType, isEquivalent, showType, type Type } from '../types/types.ts';
import type { CallExpr, Expr, Literal } from './ast.ts';

/**
 * What is wrong with the literals of an expression whose types fit: arguments of times, patterns and
 * formats that cannot be read, lists and maps with elements of several types. `types` are those of
 * its parts.
 */
export function literalIssues(expr: Expr, types: Types): readonly Issue[] {
  const issues: Issue[] = [];
  const visit = (node: Expr, isFormatted: boolean): void => {
    const issue = node.kind === 'call' ? callIssue(node, types) : undefined;
    if (issue !== undefined) issues.push(issue);
    if (!isFormatted) appendAll(issues, mixedIssues(node, types));
    // What is formatted may be of any types.
    const inside = isFormatted || (node.kind === 'call' && node.name === 'format');
    for (const child of childrenOf(node)) visit(child, inside);
  };
  visit(expr, false);
  return issues;
}

/** Elements of another type than the first one: of a list the first such, of a map all. */
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
 * Whether a literal can be read, by the function it is the first argument of. That of `matches` is
 * the pattern of the member and the text of the function: upstream reads both as a pattern.
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
