import { runInOnePiece } from '@wheelhouse/machinery';
import { CelError, kindOf, longTypeName, type Value } from '../values.ts';
import { containsParameters, parseType, splitTypes, type Type } from './types.ts';

/** The part of an evaluation that functions may use. */
export interface CallContext {
  /** Charges work. Throws `CelCostError` above the limit. */
  spend(cost: number): void;
  /**
   * Counts elementary steps, such as comparisons, for which kube-apiserver charges nothing. Throws
   * `CelCostError` above the limit.
   */
  work(steps: number): void;
  /** `==`. Counts the compared values as work. Throws `CelCostError` if they are too many. */
  equal(left: Value, right: Value): boolean;
  /** `equal` in steps. */
  equalSteps(left: Value, right: Value): Generator<void, boolean>;
  /** Whether the evaluation has cost enough for one step; a divided function then yields. */
  isStepOver(): boolean;
  /** The same context for a function that cannot pause: no step is ever over. */
  readonly atOnce: CallContext;
  /** The same context for a call that costs 1 regardless of its operands; it counts work. */
  readonly unpriced: () => CallContext;
  /** A literal pattern of a stored expression, with more parts than a new one may have. */
  readonly storedPattern?: string;
}

/**
 * Evaluates a call in one piece. Throws `CelError` for a failure and `CelCostError` above a limit.
 */
export type Run = (args: readonly Value[], context: CallContext) => Value;

/** A function in steps, between which the event loop serves others (TRUST-2). */
type RunSteps = (args: readonly Value[], context: CallContext) => Generator<void, Value>;

/** A function that takes long for long lists or texts, at once and in steps. */
interface DividedRun extends Run {
  readonly steps: RunSteps;
  readonly isSeldomLong: boolean;
}

/**
 * A function that a generator computes; it yields when the context says that a step is over.
 * @param options.isSeldomLong whether most expressions use it on short values
 */
export function divided(steps: RunSteps, { isSeldomLong = false } = {}): DividedRun {
  const run: Run = (args, context) => runInOnePiece(steps(args, context.atOnce));
  return Object.assign(run, { steps, isSeldomLong });
}

/**
 * A function that most expressions use on short values: `run`, a function of its own, computes it
 * at once, and `steps` in an evaluation that turned out to take long. Both count work before they
 * do it.
 */
export function seldomLong(run: Run, steps: RunSteps): DividedRun {
  return Object.assign(run, { steps, isSeldomLong: true });
}

/** A function that takes one step, of which many may follow; `count` counts its work. */
export function oneStepEach(
  count: (args: readonly Value[], context: CallContext) => void,
  run: Run,
): DividedRun {
  return seldomLong(
    (args, context) => {
      count(args, context);
      return run(args, context);
    },
    function* (args, context) {
      count(args, context);
      if (context.isStepOver()) yield;
      return run(args, context);
    },
  );
}

/** One signature of a function and its implementation. */
export interface Overload {
  /** Whether it is called as `target.name(…)`; the target is the first argument. */
  readonly isMember: boolean;
  readonly params: readonly Type[];
  readonly result: Type;
  /** Whether the parameters or the result contain type parameters. */
  readonly isGeneric: boolean;
  /** Whether type checking ignores it, because a parameter accepts any value at run time. */
  readonly isRunTimeOnly: boolean;
  readonly run: Run;
  /** `run` in steps; undefined for functions that are always short. */
  readonly steps?: RunSteps | undefined;
  /** Whether only an evaluation that turned out to take long runs the function in steps. */
  readonly isSeldomLong: boolean;
}

/** Functions by name; operators as `_+_`, namespaced functions as `sets.contains`. */
export type Functions = ReadonlyMap<string, readonly Overload[]>;

/**
 * A library as a table: `string.charAt(int): string` is a member function, `size(string): int` is
 * global, and `ip.isCanonical(string): bool` is global unless `ip` is a type. A parameter of type
 * `dyn` accepts only values whose type is unknown until run time.
 */
export type Library = readonly (readonly [signature: string, run: Run | DividedRun])[];

const targets = new Set(
  (
    'dyn bool int uint double string bytes list map timestamp duration type optional_type ' +
    'net.IP net.CIDR kubernetes.URL kubernetes.Quantity kubernetes.Semver kubernetes.NamedFormat ' +
    ['Authorizer', 'PathCheck', 'GroupCheck', 'ResourceCheck', 'Decision']
      .map((name) => `kubernetes.authorization.${name}`)
      .join(' ')
  ).split(' '),
);

/** Combines libraries. */
export function functionsOf(libraries: readonly Library[]): Functions {
  const functions = new Map<string, Overload[]>();
  for (const [signature, run] of libraries.flat()) {
    const { name, overload } = parseSignature(signature, run);
    const overloads = functions.get(name);
    if (overloads === undefined) functions.set(name, [overload]);
    else overloads.push(overload);
  }
  return functions;
}

function parseSignature(
  signature: string,
  run: Run | DividedRun,
): { name: string; overload: Overload } {
  const colon = signature.lastIndexOf('): ');
  const result = parseType(signature.slice(colon + 3));
  const head = signature.slice(0, colon);
  const { path, args } = splitHead(head);
  const dot = path.lastIndexOf('.');
  const target = dot > 0 ? path.slice(0, dot) : '';
  const isMember = targets.has(target.replace(/\(.*$/, '')) || /^[A-Z]$/.test(target);
  const others = splitTypes(args).map(parseType);
  const params = isMember ? [parseType(target), ...others] : others;
  return {
    name: isMember ? path.slice(dot + 1) : path,
    overload: {
      isMember,
      params,
      result,
      isGeneric: [...params, result].some(containsParameters),
      isRunTimeOnly: params.some((type) => type.name === 'dyn'),
      run,
      steps: 'steps' in run ? run.steps : undefined,
      isSeldomLong: 'steps' in run && run.isSeldomLong,
    },
  };
}

/**
 * Splits at the unclosed parenthesis: `list(A).slice(int, int` -> `list(A).slice` and `int, int`.
 */
function splitHead(head: string): { path: string; args: string } {
  let depth = 0;
  for (let at = head.length - 1; at >= 0; at -= 1) {
    if (head[at] === ')') depth += 1;
    else if (head[at] === '(' && depth-- === 0) {
      return { path: head.slice(0, at), args: head.slice(at + 1) };
    }
  }
  throw new Error(`not a signature: ${head}`);
}

/** Whether values have the kinds that an overload accepts, ignoring the content of lists. */
export function accepts(overload: Overload, args: readonly Value[]): boolean {
  return (
    overload.params.length === args.length &&
    overload.params.every((type, index) => {
      if (type.isParameter || type.name === 'dyn') return true;
      const arg = args[index];
      return arg !== undefined && type.name === kindOf(arg);
    })
  );
}

/**
 * Kinds of the first operand for which cel-go runs an operator before it detects that no overload
 * matches. The error then omits the operator, which it names for other operands.
 */
const operandKinds: Readonly<Record<string, string>> = {
  '_+_': 'bytes double duration int list string timestamp uint',
  '_-_': 'double duration int string timestamp uint',
  '_*_': 'double duration int string timestamp uint',
  '_/_': 'double duration int string timestamp uint',
  '_%_': 'duration int string timestamp uint',
  '-_': 'bool double duration int string timestamp',
  ...Object.fromEntries(
    ['_<_', '_<=_', '_>_', '_>=_'].map((operator) => [
      operator,
      'bool bytes double duration int string timestamp uint',
    ]),
  ),
  matches: 'duration string timestamp',
  size: '',
};

/** Functions that cel-go runs for operands of any kind. */
const namelessFunctions = new Set([
  '!_',
  '@in',
  'contains',
  'endsWith',
  'find',
  'findAll',
  'startsWith',
]);

const shown = (value: Value) => longTypeName(kindOf(value));

/**
 * The error of a call whose arguments match no overload, as cel-go words it.
 * @param called absent for operators that cel-go never names
 */
export function noSuchOverload(called?: {
  readonly name: string;
  readonly args: readonly Value[];
}): CelError {
  if (called === undefined || namelessFunctions.has(called.name))
    return new CelError('no such overload');
  const { name, args } = called;
  const [operand] = args;
  const kinds = Object.hasOwn(operandKinds, name) ? operandKinds[name] : undefined;
  if (kinds === undefined || operand === undefined) {
    return new CelError(`no such overload: ${name}(${args.map(shown).join(', ')})`);
  }
  const runs = kinds.split(' ').includes(kindOf(operand));
  return new CelError(runs ? 'no such overload' : `no such overload: ${name}`);
}

/** A type that expressions can construct. */
export interface StructType {
  readonly type: Type;
  /** The type of a field; undefined if it does not exist. */
  field(name: string): Type | undefined;
  /** Converts the constructed object, in steps; if absent, it remains as it is. Throws `CelError`. */
  make?(fields: ReadonlyMap<string, Value>, context: CallContext): Generator<void, Value>;
}
