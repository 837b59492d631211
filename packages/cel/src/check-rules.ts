import {
  appendAll,
  type FieldError,
  forbiddenField,
  internal,
  invalid,
  jsonObject,
} from '@wheelhouse/machinery';
import { type CelRule, childPath, type PatternAge, type Schema } from '@wheelhouse/schema';
import { product } from './cost/estimate.ts';
import {
  compileRule,
  placesOf,
  rulePath,
  type SchemaPlace,
  selfName,
  selfSchema,
} from './rule-nodes.ts';
import { declaredSize, timesInRequest, typeOfSchema } from './types/schema-types.ts';

/**
 * Validates the rules of a structural schema (CRD-3) in steps (TRUST-2): reports rules that do not
 * compile or may cost too much, at the paths of the definition. `blocked` identifies schemas with
 * other errors, whose rules are skipped; `unchanged` means that the schema was accepted before, so
 * the cost of single rules is not limited, nor are the parts of their patterns.
 */
export function* checkRules(at: {
  readonly schema: Schema;
  readonly path: string;
  readonly blocked: (path: string) => boolean;
  readonly unchanged: boolean;
}): Generator<void, readonly FieldError[]> {
  const errors: FieldError[] = [];
  const budget = new CostBudget({ unchanged: at.unchanged });
  const patterns = at.unchanged ? 'stored' : 'new';
  const root = {
    schema: at.schema,
    path: at.path,
    isRoot: true,
    uncorrelatable: undefined,
    typeFrom: 'itself' as const,
    cardinality: 1,
  };
  for (const place of placesOf(root)) {
    const { rules = [] } = place.schema;
    if (rules.length === 0 || at.blocked(place.path)) continue;
    appendAll(errors, yield* placeErrors(place, rules, { budget, patterns }));
  }
  return [...errors, ...budget.errors(at.path)];
}

function* placeErrors(
  place: SchemaPlace,
  rules: readonly CelRule[],
  { budget, patterns }: { readonly budget: CostBudget; readonly patterns: PatternAge },
): Generator<void, readonly FieldError[]> {
  const self = selfSchema(place.schema, place.isRoot);
  const type = typeOfSchema(self, selfName);
  const field = childPath(place.path, 'x-kubernetes-validations');
  if (type === undefined) return [internal(field, `internal error: ${untyped}`)];
  if (place.typeFrom === 'nothing') return [internal(field, noElements)];
  const size = declaredSize(self);
  const times = place.cardinality ?? (size === undefined ? 1 : timesInRequest(size));
  const errors: FieldError[] = [];
  for (const [index, rule] of rules.entries()) {
    yield;
    const path = rulePath(place.path, index);
    const { costs, problem, usesOldSelf } = yield* compileRule(rule, type, patterns);
    for (const member of ['rule', 'messageExpression'] as const) {
      const memberPath = childPath(path, member);
      const cost = costs[member] === undefined ? 0 : yield* costs[member](size);
      // A message is built for the first object that violates the rule.
      const total = member === 'rule' ? product(cost, times) : cost;
      appendAll(errors, budget.spend(memberPath, { member, cost: total }));
      if (problem?.member === member) {
        errors.push(invalid(memberPath, jsonObject({ ...rule }), problem.detail));
      }
    }
    appendAll(errors, oldSelfErrors({ rule, place, path, usesOldSelf }));
  }
  return errors;
}

const untyped =
  'failed to construct type information for x-kubernetes-validations rules: ' +
  'unable to convert structural schema to CEL declarations';

const noElements = 'failed to convert to declType for CEL validation rules';

/** Limits on the estimated cost of one rule and of all rules of a schema. */
const ruleCostMax = 10_000_000;
const schemaCostMax = 100_000_000;
/** Number of the most expensive rules that are named if the total cost is too high. */
const namedMax = 4;

/** Sums the estimated costs of a schema's rules. */
class CostBudget {
  readonly #unchanged: boolean;
  #total = 0;
  #mostExpensive: { readonly field: string; readonly cost: number }[] = [];

  constructor({ unchanged }: { unchanged: boolean }) {
    this.#unchanged = unchanged;
  }

  spend(
    field: string,
    { member, cost }: { member: 'rule' | 'messageExpression'; cost: number },
  ): readonly FieldError[] {
    this.#total += cost;
    if (cost >= schemaCostMax / 100) {
      const sorted = [...this.#mostExpensive, { field, cost }].sort((a, b) => b.cost - a.cost);
      this.#mostExpensive = sorted.slice(0, namedMax);
    }
    if (this.#unchanged || cost <= ruleCostMax) return [];
    return [forbiddenField(field, overBudget(`estimated ${member} cost`, cost, ruleCostMax))];
  }

  errors(path: string): readonly FieldError[] {
    if (this.#total <= schemaCostMax) return [];
    const detail =
      'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    return [
      ...this.#mostExpensive.map(({ field }) => forbiddenField(field, detail)),
      forbiddenField(path, overBudget(what, this.#total, schemaCostMax)),
    ];
  }
}

function overBudget(what: string, cost: number, limit: number): string {
  const times = cost / limit;
  let factor = `${times.toFixed(times < 1.5 ? 6 : 1)}x`;
  if (times > 100) factor = 'more than 100x';
  return (
    `${what} exceeds budget by factor of ${factor} (try simplifying the rule, or adding maxItems, ` +
    'maxProperties, and maxLength where arrays, maps, and strings are declared)'
  );
}

function oldSelfErrors(at: {
  rule: CelRule;
  place: SchemaPlace;
  path: string;
  usesOldSelf: boolean;
}): readonly FieldError[] {
  const { rule, place, path } = at;
  const errors: FieldError[] = [];
  if (at.usesOldSelf && place.uncorrelatable !== undefined) {
    const within = `within ${place.uncorrelatable}`;
    const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema ${within}`;
    errors.push(invalid(childPath(path, 'rule'), rule.rule, detail));
  }
  if (!at.usesOldSelf && rule.optionalOldSelf !== undefined) {
    const detail = 'may not be set if oldSelf is not used in rule';
    errors.push(invalid(childPath(path, 'optionalOldSelf'), rule.optionalOldSelf, detail));
  }
  return errors;
}
