import { itemAt, type JsonValue, type WorkBudget } from '@wheelhouse/machinery';
import type { NestedValidation, ValueValidation } from '../schema.ts';
import { compositeError } from './validate-scalars.ts';
import { nodeOfNested, type ValidationNode } from './validation-node.ts';
import { type Check, mergeInto, newResult, type Place, type Result } from './validation-result.ts';

type Compile = (node: ValidationNode) => Check;

interface Checks {
  readonly anyOf: readonly Check[];
  readonly oneOf: readonly Check[];
  readonly allOf: readonly Check[];
  readonly not: Check | undefined;
}

/** The checks of allOf, anyOf, oneOf and not; undefined when there are none. */
export function junctorsOf(validation: ValueValidation, compile: Compile): Check | undefined {
  const { anyOf = [], oneOf = [], allOf = [], not } = validation;
  if (anyOf.length + oneOf.length + allOf.length === 0 && not === undefined) return undefined;
  const all = (list: readonly NestedValidation[]) => list.map((one) => compile(nodeOfNested(one)));
  const checks: Checks = {
    anyOf: all(anyOf),
    oneOf: all(oneOf),
    allOf: all(allOf),
    not: not === undefined ? undefined : compile(nodeOfNested(not)),
  };
  return (value, place, result) => {
    if (checks.anyOf.length > 0) checkAny(checks.anyOf, { value, place }, result);
    if (checks.oneOf.length > 0) checkOne(checks.oneOf, { value, place }, result);
    if (checks.allOf.length > 0) checkAll(checks.allOf, { value, place }, result);
    if (checks.not !== undefined && isValid(run(checks.not, { value, place }, result.work))) {
      const message = `${JSON.stringify(place.path)} must not validate the schema (not)`;
      result.errors.push(compositeError(message));
    }
  };
}

interface At {
  readonly value: JsonValue;
  readonly place: Place;
}

/** What an alternative costs beside its patterns: a schema may have as many as an object has items. */
const alternativeSteps = 20;

function run(check: Check, at: At, work: WorkBudget): Result {
  work.spend(alternativeSteps);
  const result = newResult(work);
  check(at.value, at.place, result);
  result.checks += 1;
  return result;
}

const isValid = (result: Result) => result.errors.length === 0;

/**
 * Of alternatives that all fail, the errors of the one with most checks passed are told as well.
 */
function checkAny(alternatives: readonly Check[], at: At, result: Result): void {
  let best: Result | undefined;
  for (const alternative of alternatives) {
    const outcome = run(alternative, at, result.work);
    if (isValid(outcome)) {
      mergeInto(result, outcome);
      return;
    }
    if (best === undefined || outcome.checks > best.checks) best = outcome;
  }
  const path = JSON.stringify(at.place.path);
  result.errors.push(compositeError(`${path} must validate at least one schema (anyOf)`));
  if (best !== undefined) mergeInto(result, best);
}

function checkOne(alternatives: readonly Check[], at: At, result: Result): void {
  const outcomes = alternatives.map((alternative) => run(alternative, at, result.work));
  const valid = outcomes.filter(isValid);
  if (valid.length === 1) {
    mergeInto(result, itemAt(valid, 0));
    return;
  }
  const found =
    valid.length === 0 ? 'Found none valid' : `Found ${valid.length} valid alternatives`;
  const path = JSON.stringify(at.place.path);
  result.errors.push(
    compositeError(`${path} must validate one and only one schema (oneOf). ${found}`),
  );
  if (valid.length > 0) return;
  let best = itemAt(outcomes, 0);
  for (const outcome of outcomes) if (outcome.checks > best.checks) best = outcome;
  mergeInto(result, best);
}

function checkAll(parts: readonly Check[], at: At, result: Result): void {
  const outcomes = parts.map((part) => run(part, at, result.work));
  for (const outcome of outcomes) mergeInto(result, outcome);
  const valid = outcomes.filter(isValid).length;
  if (valid === parts.length) return;
  const path = JSON.stringify(at.place.path);
  const none = valid === 0 ? '. None validated' : '';
  result.errors.push(compositeError(`${path} must validate all the schemas (allOf)${none}`));
}
