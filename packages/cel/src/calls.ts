import { type Frame, outcome, type Step, type Work } from './folds.ts';
import { shownKey } from './library/arithmetic.ts';
import { accepts, type CallContext, noSuchOverload, type Overload } from './types/functions.ts';
import {
  CelCostError,
  CelError,
  Duration,
  isMapValue,
  List,
  nativeType,
  Opaque,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
  type Value,
} from './values.ts';

/** Indexing a value without content reports a missing key, as in cel-go. */
function unknownCall({ name, hasLiteralPattern }: Call, args: readonly Value[]): CelError {
  if (hasLiteralPattern) return noSuchOverload();
  const [operand, key] = args;
  const isScalar = operand !== undefined && !(operand instanceof List) && !isMapValue(operand);
  if (name !== '_[_]' || !isScalar) return noSuchOverload({ name, args });
  return new CelError(`no such key: ${shownKey(key ?? null)}`);
}

/**
 * Maximum length of a text that a function searches or splits, because its cost says little about
 * its time.
 */
const textMax = 200_000;

/** Functions that only compare or count, which V8 does fast, or that read a text in steps. */
const comparing = new Set(
  '_==_ _!=_ _<_ _<=_ _>_ _>=_ _+_ @in size contains endsWith startsWith matches'.split(' '),
);

/** Maximum length of a text that any function reads. */
const anyTextMax = 4_000_000;

/** A call of a function with compiled arguments. */
export interface Call {
  readonly name: string;
  /** The overloads that match the declared types, which are tried first. */
  readonly declared: readonly Overload[];
  readonly others: readonly Overload[];
  /** The arguments, the target first. */
  readonly steps: readonly Step[];
  /** What the call costs besides what the function charges. */
  readonly cost: number;
  /** What an index into an optional without a value costs; undefined for other functions. */
  readonly absentCost: number | undefined;
  /** Whether a failing argument ends the call, which then costs nothing. */
  readonly endsAtFailure: boolean;
  /** Whether it matches a literal pattern, for which cel-go has a function without a name. */
  readonly hasLiteralPattern: boolean;
  /** See `CallContext.storedPattern`. */
  readonly storedPattern: string | undefined;
}

/**
 * Functions whose costs cel-go knows by their overloads. If the declared types, such as dyn, leave
 * several overloads, a call costs 1.
 */
const pricedByOverload = new Set('_+_ _<_ _<=_ _>_ _>=_ @in string bytes'.split(' '));

/**
 * Evaluates the arguments. Throws the failure of the first one that has one. cel-go also charges a
 * failing call for the length of its other operand if that is a text.
 */
function argumentsOf(call: Call, frame: Frame): readonly Value[] {
  const { name, declared, steps, cost, endsAtFailure } = call;
  let failure: CelError | undefined;
  const args: Value[] = [];
  for (const step of steps) {
    const arg = outcome(step, frame);
    if (!(arg instanceof CelError)) {
      args.push(arg);
      if (call.absentCost !== undefined && isAbsent(arg)) return args;
      continue;
    }
    if (endsAtFailure) throw arg;
    failure ??= arg;
    args.push(null);
  }
  frame.spend(cost);
  if (failure === undefined) return args;
  const [, searched] = args;
  const isSearch = name === '@in' && declared.length <= 1;
  if (isSearch && searched instanceof List) frame.spend(searched.items.length - 1);
  throw failure;
}

/** What runs a call. */
interface Resolved {
  readonly overload: Overload;
  readonly args: readonly Value[];
  readonly context: CallContext;
}

/**
 * Finds the overload that accepts the arguments, and what it draws on. Returns an
 * absent optional that was indexed. Throws `CelError`.
 */
function resolved(call: Call, frame: Frame): Resolved | Optional {
  const args = argumentsOf(call, frame);
  const { name, declared, others, absentCost } = call;
  if (absentCost !== undefined) {
    const [operand = null, index] = args;
    if (operand instanceof Optional && index === undefined) {
      frame.spend(absentCost);
      return operand;
    }
    if (index !== undefined) refuseQualifier(index);
  }
  let max = comparing.has(name) ? anyTextMax : textMax;
  for (const arg of args) {
    if (typeof arg === 'string' && arg.length > max) {
      throw new CelCostError(`operation cancelled: a text has more than ${max} characters`);
    }
    max = anyTextMax;
  }
  const fits = (overload: Overload) => accepts(overload, args);
  const [only] = declared;
  const first = only !== undefined && accepts(only, args) ? only : undefined;
  const overload = first ?? declared.find(fits) ?? others.find(fits);
  if (overload === undefined) throw unknownCall(call, args);
  const isUnpriced = declared.length > 1 && pricedByOverload.has(name);
  const context = isUnpriced ? frame.unpriced() : frame;
  return { overload, args, context: withStoredPattern(context, call.storedPattern) };
}

/** An optional without a value. */
export const isAbsent = (value: Value | CelError): boolean =>
  value instanceof Optional && value.value === undefined;

/** Refuses values that cannot index anything. Throws `CelError`. */
export function refuseQualifier(index: Value): void {
  if (index !== null && (typeof index !== 'object' || index instanceof Uint)) return;
  const found = qualifierTypes.find(([fits]) => fits(index));
  const type = index instanceof Opaque ? nativeType(index) : found?.[1];
  if (type !== undefined) throw new CelError(`invalid qualifier type: ${type}`);
}

const qualifierTypes: readonly (readonly [fits: (index: Value) => boolean, name: string])[] = [
  [(index) => index === null, 'types.Null'],
  [(index) => index instanceof Uint8Array, 'types.Bytes'],
  [(index) => index instanceof Timestamp, 'types.Timestamp'],
  [(index) => index instanceof Duration, 'types.Duration'],
  [(index) => index instanceof TypeValue, '*types.Type'],
  [(index) => index instanceof Optional, '*types.Optional'],
  [(index) => index instanceof List, '*types.baseList'],
  [(index) => isMapValue(index), '*types.baseMap'],
];

/** Exempts the pattern of one call from the limit, for as long as its program exists. */
function withStoredPattern(context: CallContext, storedPattern: string | undefined): CallContext {
  if (storedPattern === undefined) return context;
  return { ...context, storedPattern, atOnce: { ...context.atOnce, storedPattern } };
}

/** Compiles a call to a step. */
export function callStep(call: Call): Step {
  return (frame) => {
    const found = resolved(call, frame);
    if (found instanceof Optional) return found;
    const { overload, args, context } = found;
    return overload.run(args, context);
  };
}

/** `callStep` in steps. */
export function callWork(call: Call): Work {
  return function* (frame) {
    const found = resolved(call, frame);
    if (found instanceof Optional) return found;
    const { overload, args, context } = found;
    return overload.steps === undefined
      ? overload.run(args, context)
      : yield* overload.steps(args, context);
  };
}
