import {
  duplicate,
  type FieldError,
  forbiddenField,
  goQuoted,
  type IntegralFloats,
  integralFloatsOf,
  invalid,
  isIntegralFloat,
  isObject,
  type JsonValue,
  member,
  required,
} from '@wheelhouse/machinery';
import {
  type Correlation,
  childPath,
  correlate,
  correlateItem,
  correlateMember,
  indexPath,
  isUnchanged,
  keyPath,
  noField,
  type PatternAge,
  type Schema,
} from '@wheelhouse/schema';
import type { Program } from './evaluator.ts';
import { floatToValue, jsonToValue, optionalValue } from './json-values.ts';
import { Conversions } from './meter.ts';
import { type CompiledRule, type RuleNode, ruleNode } from './rule-nodes.ts';
import { CelCostError, CelError, Optional, type Value } from './values.ts';

/** Cost limits of one rule and of all rules of an object. */
const ruleCostMax = 1_000_000;
const objectCostMax = 10_000_000;
const messageBytesMax = 5120;

/** Called for a violation that an update did not introduce and that is therefore tolerated. */
type Warn = (text: string) => void;

/** Rejects an update for existing violations too. */
type Unforgiving = 'unforgiving';

/** The validator of the rules of a custom kind's version, in steps (TRUST-2). */
type RunRules = (
  object: JsonValue,
  old: JsonValue | undefined,
  warn?: Warn | Unforgiving,
) => Generator<void, readonly FieldError[]>;

/** Metrics of rules; all times are milliseconds. */
export interface RuleMeter {
  now(): number;
  /** Called when the rules of a schema have been compiled; the time includes pauses. */
  compiled(tookMs: number): void;
  /** Called when the rules of an object have been evaluated; the time includes pauses. */
  evaluated(tookMs: number): void;
}

/**
 * Creates the validator of a schema's rules; undefined if it has none. Rules are compiled on first
 * use. A violation by an unchanged value is only a warning, unless the rule uses the old value
 * (CRD-3).
 */
export function compileRules(schema: Schema, meter?: RuleMeter): RunRules {
  let node: RuleNode | undefined | 'unknown' = 'unknown';
  function* compiled() {
    const startMs = meter?.now() ?? 0;
    const rules = yield* ruleNode(schema, { isRoot: true, patterns: 'stored' });
    if (rules !== undefined) meter?.compiled(meter.now() - startMs);
    return rules;
  }
  return function* (object, old, warn = () => {}) {
    if (node === 'unknown') node = yield* compiled();
    if (node === undefined) return [];
    const startMs = meter?.now() ?? 0;
    const floats = isObject(object) ? integralFloatsOf(object) : undefined;
    const run = new RuleRun({ floats, ...(warn === 'unforgiving' ? {} : { warn }) });
    const pair = old === undefined ? undefined : correlate({ old, value: object, schema });
    yield* run.validate(node, { value: object, path: '', pair });
    meter?.evaluated(meter.now() - startMs);
    return run.errors;
  };
}

/**
 * Validates a default by the rules of its schema, in steps: first as the old value, and if that is
 * valid, as the new one. Returns the remaining budget of all defaults of a definition.
 */
export function* validateDefault(
  schema: Schema,
  value: JsonValue,
  at: {
    readonly path: string;
    readonly isRoot: boolean;
    readonly budget: number;
    readonly patterns: PatternAge;
  },
): Generator<void, { readonly errors: readonly FieldError[]; readonly left: number }> {
  const node = yield* ruleNode(schema, at);
  if (node === undefined) return { errors: [], left: at.budget };
  const update = new RuleRun({ budget: at.budget });
  const pair = correlate({ old: value, value, schema });
  yield* update.validate(node, { value, path: at.path, pair });
  if (update.errors.length > 0) return { errors: update.errors, left: update.left };
  const create = new RuleRun({ budget: at.budget });
  yield* create.validate(node, { value, path: at.path, pair: undefined });
  return { errors: create.errors, left: Math.min(create.left, update.left) };
}

interface Place {
  readonly value: JsonValue;
  readonly path: string;
  /** The previous value. */
  readonly pair: Correlation | undefined;
  /** The nearest enclosing value that has a previous version. */
  readonly around?: Correlation | undefined;
  /** Whether the value is an integral float. */
  readonly isFloat?: boolean;
}

/** Whether a value, or the nearest enclosing value with a previous version, is unchanged. */
function isKept({ pair, around }: Place): boolean {
  const place = pair ?? around;
  return place !== undefined && isUnchanged(place);
}

/** Holds the errors of one validation and the remaining budget. */
class RuleRun {
  readonly errors: FieldError[] = [];
  /** If absent, every violation is an error. */
  readonly #warn: Warn | undefined;
  readonly #floats: IntegralFloats | undefined;
  readonly #conversions = new Conversions();
  #left: number;

  constructor(options: {
    readonly budget?: number;
    readonly warn?: Warn;
    readonly floats?: IntegralFloats | undefined;
  }) {
    const { budget = objectCostMax, warn, floats } = options;
    this.#left = budget;
    this.#warn = warn;
    this.#floats = floats;
  }

  /** Remaining budget; negative if rules were skipped. */
  get left(): number {
    return this.#left;
  }

  *validate(node: RuleNode, place: Place): Generator<void, void> {
    const { value, path, pair } = place;
    const around = pair ?? place.around;
    if (value === null || this.#left < 0) return;
    if (node.isUntyped) this.errors.push(invalid(nameOf(path), typeOf(node), untyped));
    else if (node.rules.length > 0) yield* this.#validateNode(node, place);
    if (Array.isArray(value)) {
      const { items } = node;
      if (items === undefined) return;
      for (const [index, item] of value.entries()) {
        const at = indexPath(path, index);
        const before = correlateItem(pair, index);
        const isFloat = isIntegralFloat(this.#floats, value, index);
        yield* this.validate(items, { value: item, path: at, pair: before, around, isFloat });
        yield;
      }
      return;
    }
    if (!isObject(value)) return;
    for (const name of Object.keys(value)) {
      const child = node.properties.get(name) ?? node.additional;
      const memberValue = member(value, name);
      if (child === undefined || memberValue === undefined) continue;
      const at = child === node.additional ? keyPath(path, name) : childPath(path, name);
      yield* this.validate(child, {
        value: memberValue,
        path: at,
        pair: correlateMember(pair, name),
        around,
        isFloat: isIntegralFloat(this.#floats, value, name),
      });
      yield;
    }
  }

  *#validateNode(node: RuleNode, place: Place): Generator<void, void> {
    const { pair } = place;
    if (this.#left <= 0) {
      const why = `validation ${new OutOfBudget().message}`;
      this.errors.push(invalid(nameOf(place.path), typeOf(node), why));
      this.#left = -1;
      return;
    }
    const hasOld = pair !== undefined && pair.old !== null;
    const counter = this.#conversions;
    let self: Value | CelError;
    let old: Value | undefined;
    try {
      self =
        place.isFloat === true
          ? floatToValue(Number(place.value), node.self)
          : jsonToValue(place.value, node.self, { floats: this.#floats, counter });
      old = hasOld ? jsonToValue(pair.old, node.self, { counter }) : undefined;
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      self = error;
    }
    for (const rule of node.rules) {
      if (rule.program === undefined) {
        if (rule.problem.isEmpty) continue;
        const why = `rule compile error: ${rule.problem.detail}`;
        this.errors.push(invalid(nameOf(place.path), typeOf(node), why));
        continue;
      }
      const isOptional = rule.rule.optionalOldSelf === true;
      if (rule.usesOldSelf && old === undefined && !isOptional) continue;
      if (self instanceof CelError) {
        this.errors.push(invalid(nameOf(place.path), typeOf(node), failure(self, rule)));
        continue;
      }
      const oldSelf = isOptional ? this.#optionalOld(pair, node) : (old ?? null);
      yield* this.#run(rule, {
        variables: new Map([
          ['self', self],
          ['oldSelf', oldSelf],
        ]),
        old,
        node,
        place,
      });
      if (this.#left < 0) return;
    }
  }

  #optionalOld(pair: Correlation | undefined, node: RuleNode): Optional {
    const hasOld = pair !== undefined && pair.old !== null;
    const conversion = { counter: this.#conversions };
    return new Optional(hasOld ? optionalValue(pair.old, node.self, conversion) : undefined);
  }

  *#run(rule: CompiledRule, at: RuleTarget): Generator<void, void> {
    const field = nameOf(at.place.path);
    const type = typeOf(at.node);
    try {
      if ((yield* this.#evaluate(rule.program, at.variables)) === true) return;
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      const why =
        error instanceof OutOfBudget ? `validation ${error.message}` : failure(error, rule);
      this.errors.push(invalid(field, type, why));
      return;
    }
    const error = yield* this.#violation(rule, at);
    if (this.#warn === undefined || rule.usesOldSelf || !isKept(at.place)) this.errors.push(error);
    else this.#warn(`${error.field}: ${error.message}`);
  }

  /** Runs a program. Once the budget is exceeded, nothing else runs. */
  *#evaluate(program: Program, variables: Variables): Generator<void, Value> {
    const left = this.#left;
    const costMax = Math.min(ruleCostMax, left);
    const { value, cost, error } = yield* program.steps(variables, costMax, this.#conversions);
    if (error instanceof CelCostError) {
      this.#left = -1;
      throw left <= ruleCostMax ? new OutOfBudget() : error;
    }
    this.#left -= cost;
    if (error !== undefined) throw error;
    return value;
  }

  *#violation(rule: CompiledRule, target: RuleTarget): Generator<void, FieldError> {
    const { node, place } = target;
    // In kube-apiserver, a rule whose message does not compile is not compiled at all.
    const fieldPath = rule.problem === undefined ? rule.rule.fieldPath : undefined;
    const field = fieldPathOf(place.path, fieldPath, node.schema);
    const type = typeOf(node);
    const message =
      rule.message === undefined ? undefined : yield* this.#messageOf(rule.message, target);
    if (!(message instanceof CelError)) {
      return errorOf(rule, { field, type, detail: message ?? fixedMessage(rule) });
    }
    const source = goQuoted(rule.rule.messageExpression ?? '');
    const why =
      message instanceof OutOfBudget
        ? `messageExpression evaluation ${message.message}`
        : `${noMore} due to call cost exceeds limit for messageExpression: ${source}`;
    return invalid(field, type, why);
  }

  /**
   * A message expression that fails, or whose result cannot be shown on one line, is replaced by
   * the fixed message; one that costs too much is not. Its `oldSelf` is the old value itself, also
   * for rules with `optionalOldSelf`, and absent if no rule of the schema uses it.
   */
  *#messageOf(
    program: Program,
    target: RuleTarget,
  ): Generator<void, string | CelError | undefined> {
    const variables = new Map(target.variables);
    variables.delete('oldSelf');
    const isCompared = target.node.rules.some(({ usesOldSelf }) => usesOldSelf);
    if (isCompared && target.old !== undefined) variables.set('oldSelf', target.old);
    try {
      const value = yield* this.#evaluate(program, variables);
      if (typeof value !== 'string') return undefined;
      const message = value.trim();
      const isShown = message !== '' && Buffer.byteLength(message) <= messageBytesMax;
      return isShown && !message.includes('\n') ? message : undefined;
    } catch (error) {
      if (error instanceof CelCostError) return error;
      if (error instanceof CelError) return undefined;
      throw error;
    }
  }
}

type Variables = ReadonlyMap<string, Value>;

/** The value that a rule validates. */
interface RuleTarget {
  readonly variables: Variables;
  /** The previous value. */
  readonly old: Value | undefined;
  readonly node: RuleNode;
  readonly place: Place;
}

const noMore = 'no further validation rules will be run';

/** The budget of all rules of an object is exhausted. */
class OutOfBudget extends CelCostError {
  constructor() {
    super(`failed due to running out of cost budget, ${noMore}`);
  }
}

function fixedMessage({ rule }: CompiledRule): string {
  const message = (rule.message ?? '').trim();
  return message === '' ? `failed rule: ${rule.rule.trim()}` : message;
}

const untyped =
  'rule compiler initialization error: failed to convert to declType for CEL validation rules';

/** Go prints the path of the whole object as `<nil>`. */
function nameOf(path: string): string {
  return path === '' ? noField : path;
}

function typeOf({ schema }: RuleNode): string {
  return schema.type ?? '';
}

function failure(error: CelError, { rule }: CompiledRule): string {
  const message = (rule.message ?? '').trim();
  const shown = message === '' ? rule.rule.trim() : message;
  if (error.message.startsWith('no such overload')) {
    const why = 'call arguments did not match a supported operator, function or macro signature';
    return `'${error.message}': ${why} for rule: ${shown}`;
  }
  if (error instanceof CelCostError) {
    const why = `${noMore} due to call cost exceeds limit for rule`;
    return `'${error.message}': ${why}: ${shown}`;
  }
  return `${error.message} evaluating rule: ${shown}`;
}

function errorOf(
  { rule }: CompiledRule,
  at: { field: string; type: string; detail: string },
): FieldError {
  switch (rule.reason) {
    case 'FieldValueForbidden':
      return forbiddenField(at.field, at.detail);
    case 'FieldValueRequired':
      return required(at.field, at.detail);
    case 'FieldValueDuplicate':
      return duplicate(at.field, at.type);
    default:
      return invalid(at.field, at.type, at.detail);
  }
}

/** The field of a rule's error: its own, or that of its `fieldPath` if that is valid. */
function fieldPathOf(path: string, fieldPath: string | undefined, from: Schema): string {
  let field = path;
  let schema: Schema | undefined = from;
  for (const [, dotted, quoted] of (fieldPath ?? '').matchAll(
    /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/g,
  )) {
    const name = dotted ?? (quoted ?? '').replace(/\\(.)/g, '$1');
    const property: Schema | undefined = schema?.properties?.get(name)?.schema;
    const isKey = property === undefined && schema?.additionalProperties !== undefined;
    if (property === undefined && !isKey) return nameOf(path);
    // kube-apiserver appends the whole path with a dot, even if it begins with a key.
    const parent = isKey && field === path && path !== '' ? `${path}.` : field;
    field = isKey ? keyPath(parent, name) : childPath(field, name);
    schema = property ?? schema?.additionalProperties;
  }
  return nameOf(field);
}
