import { runInOnePiece } from '@wheelhouse/machinery';
import { Attributes, isIndex } from './attributes.ts';
import { bindStep, bindWork, optionalMapStep, optionalMapWork, readSpecial } from './bindings.ts';
import { type Call, callStep, callWork, isAbsent, refuseQualifier } from './calls.ts';
import type { Checked } from './checker.ts';
import { Constants, constant } from './constants.ts';
import {
  type Compiles,
  type Frame,
  foldStep,
  foldWork,
  outcomeSteps,
  type Step,
  type SteppedFrame,
  setEntry,
  type Work,
} from './folds.ts';
import { lazyStep, lazyWork } from './lazy-operators.ts';
import { showValue } from './library/conversions.ts';
import { checkLiteralPattern } from './library/strings.ts';
import { type Conversions, type Division, Meter, workMax } from './meter.ts';
import { attributeStep, mayBeOptional } from './optional-attributes.ts';
import { inPasses, type Pass, passFor } from './passes.ts';
import {
  type CallExpr,
  type Expr,
  operandsOf,
  qualifiedName,
  type SelectExpr,
  type StructExpr,
} from './syntax/ast.ts';
import { enumValues, typesWithoutValue } from './syntax/messages.ts';
import { type Environment, namespacedName, structNamed, typeNames } from './types/environment.ts';
import type { CallContext, Overload } from './types/functions.ts';
import { dynType } from './types/types.ts';
import {
  CelCostError,
  CelError,
  EntryMap,
  isMapValue,
  List,
  LongEvaluation,
  LongOperand,
  longTypeName,
  Optional,
  StructValue,
  TypeValue,
  Unreadable,
  type Value,
} from './values.ts';

/** A compiled expression that can be evaluated any number of times. */
export interface Program {
  /**
   * Evaluates the program. Throws `CelError` on failure and `CelCostError` above `costMax`.
   * @returns the value and its cost
   */
  run(variables: ReadonlyMap<string, Value>, costMax: number): { value: Value; cost: number };
  /**
   * The same, but returns a failure as `error`, because it has a cost too. Throws
   * `EvaluationPaused`.
   */
  measure(variables: ReadonlyMap<string, Value>, costMax: number): Measured;
  /**
   * `measure` in one piece if that is short; otherwise undefined. Throws `LongOperand` as well.
   */
  attempt(
    variables: ReadonlyMap<string, Value>,
    costMax: number,
    conversions?: Conversions,
  ): Measured | undefined;
  /**
   * `measure` in steps, for expressions whose macros and functions read long lists (TRUST-2).
   * The part that an evaluation repeats after a `LongOperand` counts as work but costs nothing.
   * @param conversions counts the items of the variables that are converted when they are read
   */
  steps(
    variables: ReadonlyMap<string, Value>,
    costMax: number,
    conversions?: Conversions,
  ): Generator<void, Measured>;
}

/**
 * Evaluations up to this cost and work are not divided. They take half a millisecond, and several
 * times as long before their code is optimized.
 */
const undivided = { cost: 4_000, work: 8_000 };

/** The result of an evaluation and its cost. */
export type Measured = { readonly cost: number } & (
  | { readonly value: Value; readonly error?: never }
  | { readonly error: CelError; readonly value?: never }
);

/** Options for compiling a tree to a program. */
interface ProgramOptions {
  /** The text of the expression, whose length decides whether its compilation is divided. */
  readonly source: string;
  readonly environment: Environment;
  /** The overloads that match the declared types of calls, because lists are untyped at runtime. */
  readonly checked: Pick<Checked, 'overloads' | 'types'>;
}

/**
 * Compiles a tree to a program, in steps if it is long (TRUST-2). Throws `CelError` if constants
 * alone prove a failure.
 */
export function* programSteps(expr: Expr, options: ProgramOptions): Generator<void, Program> {
  const names = [...options.environment.variables.keys()];
  const pass = passFor<Expr, Step>(options.source);
  const compiler = new Compiler(options, { pass });
  const step = yield* inPasses(pass, () => compiler.compile(expr, names));
  const measured = (
    variables: ReadonlyMap<string, Value>,
    limits: { readonly cost: number; readonly work: number },
    conversions?: Conversions,
  ): Measured => {
    const meter = new Meter(limits, conversions);
    try {
      return { value: step(meter.frame(slotsOf(names, variables))), cost: meter.cost };
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      return { error, cost: meter.cost };
    }
  };
  const attempt: Program['attempt'] = (variables, costMax, conversions) => {
    const cost = Math.min(costMax, undivided.cost);
    const measurement = measured(variables, { cost, work: undivided.work }, conversions);
    return measurement.error instanceof CelCostError ? undefined : measurement;
  };
  return {
    run(variables, costMax) {
      const meter = new Meter({ cost: costMax, work: workMax });
      return { value: step(meter.frame(slotsOf(names, variables))), cost: meter.cost };
    },
    measure: (variables, costMax) => measured(variables, { cost: costMax, work: workMax }),
    attempt,
    steps: dividedEvaluation(expr, { ...options, names, attempt }),
  };
}

const slotsOf = (names: readonly string[], variables: ReadonlyMap<string, Value>) =>
  names.map((name) => variables.get(name));

/** The evaluation of a program in steps, unless a first attempt shows that it is short. */
function dividedEvaluation(
  expr: Expr,
  options: ProgramOptions & {
    readonly names: readonly string[];
    readonly attempt: Program['attempt'];
  },
): Program['steps'] {
  const { names, attempt } = options;
  const works: { macros?: Work; functions?: Work } = {};
  function* divided(
    variables: ReadonlyMap<string, Value>,
    meter: Meter,
    division: 'macros' | 'functions',
  ): Generator<void, Measured> {
    const work = works[division] ?? (yield* workSteps(expr, { ...options, division }));
    works[division] = work;
    const frame = meter.frame(slotsOf(names, variables), division);
    try {
      const value = yield* work({ ...frame, operands: new Map() });
      return { value, cost: meter.cost };
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      return { error, cost: meter.cost };
    }
  }
  return function* (variables, costMax, conversions) {
    const meter = new Meter({ cost: costMax, work: workMax }, conversions);
    let isFirst = true;
    let division: 'macros' | 'functions' = 'macros';
    for (;;) {
      const { cost, work } = meter;
      try {
        if (isFirst) {
          isFirst = false;
          const short = attempt(variables, costMax, conversions);
          if (short !== undefined) return short;
          yield;
        }
        return yield* divided(variables, meter, division);
      } catch (error) {
        if (error instanceof LongOperand) {
          meter.reset({ cost, work: meter.work + (meter.cost - cost) });
          yield* error.work;
        } else if (error instanceof LongEvaluation) {
          division = 'functions';
          meter.reset({ cost, work });
          yield;
        } else throw error;
      } finally {
        conversions?.unlimit();
      }
    }
  };
}

/** Compiles a tree to work, in steps if it is long. */
function workSteps(
  expr: Expr,
  options: ProgramOptions & { readonly names: readonly string[]; readonly division: Division },
): Generator<void, Work> {
  const pass = passFor<Expr, Step>(options.source);
  const compiler = new Compiler(options, { division: options.division, pass });
  return inPasses(pass, () => compiler.work(expr, options.names));
}

const noSuchAttribute = (name: string) => new CelError(`no such attribute(s): ${name}`);

/** Functions whose second argument is a pattern. */
const searching = new Set(['find', 'findAll', 'matches']);

/** Whether cel-go evaluates no argument after one that fails, and does not charge the call. */
function endsAtFailure(name: string, args: readonly Expr[]): boolean {
  const isSearch = searching.has(name) && args[1]?.kind === 'const';
  return isIndex(name) || isSearch || args.length > 2;
}

/** A node without macros as work that consists of one step. */
const oneStep = (step: Step): Work =>
  function* (frame) {
    if (frame.isStepOver()) yield;
    return step(frame);
  };

/** The value of an operand that was evaluated in steps. */
function operandOf(frame: Frame, expr: Expr): Value {
  const { operands } = frame as Partial<SteppedFrame>;
  const value = operands?.get(expr);
  if (value === undefined) throw new Error('an operand has not been evaluated');
  if (value instanceof CelError) throw value;
  return value;
}

/** The work of weighing a node, compared with that of compiling it. */
const weighingWork = 0.2;

/** Maximum number of nodes that one step evaluates if none of them takes long. */
const undividedNodes = 1_000;

/** Compiles nodes to steps; `scope` lists the variables by slot. */
class Compiler implements Compiles {
  readonly #environment: Environment;
  readonly #declared: Checked['overloads'];
  readonly #types: Checked['types'];
  readonly #weights = new WeakMap<Expr, number>();
  readonly #division: Division;
  readonly #pass: Pass<Expr, Step> | undefined;
  readonly #works = new Map<Expr, Work>();
  readonly #constants = new Constants();
  readonly #attributes = new Attributes();
  /** Literal patterns, with those that have more parts than new ones may have. */
  readonly #checkedPatterns = new Map<Expr, string | undefined>();
  readonly #fittingOverloads = new Map<string, readonly Overload[]>();
  /** The operands that are evaluated before the current node. */
  #evaluated: ReadonlySet<Expr> = new Set();

  constructor(
    { environment, checked }: ProgramOptions,
    at: { readonly division?: Division; readonly pass: Pass<Expr, Step> | undefined },
  ) {
    this.#environment = environment;
    this.#declared = checked.overloads;
    this.#types = checked.types;
    this.#division = at.division ?? 'none';
    this.#pass = at.pass;
  }

  compile(expr: Expr, scope: readonly string[]): Step {
    if (this.#evaluated.has(expr)) return (frame) => operandOf(frame, expr);
    const pass = this.#evaluated.size > 0 ? undefined : this.#pass;
    if (pass === undefined) return this.#step(expr, scope);
    return pass.resultOf(expr) ?? pass.finish(expr, this.#step(expr, scope));
  }

  #step(expr: Expr, scope: readonly string[]): Step {
    switch (expr.kind) {
      case 'const':
        return constant(this.#constants.valueOf(expr) ?? null);
      case 'ident':
        return this.#ident(expr, expr.name.replace(/^\./, ''), scope);
      case 'select':
        return this.#select(expr, scope);
      case 'call':
        return this.#call(expr, scope);
      case 'list':
        return this.#list(expr, scope);
      case 'map':
        return this.#map(expr, scope);
      case 'fold':
        return foldStep(this, expr, scope);
      case 'optionalMap':
        return optionalMapStep(this, expr, scope);
      case 'bind':
        return bindStep(this, expr, scope);
      case 'struct':
        return this.#struct(expr, scope);
    }
  }

  work(expr: Expr, scope: readonly string[]): Work {
    const finished = this.#works.get(expr);
    if (finished !== undefined) return finished;
    const work = this.#work(expr, scope);
    if (this.#pass !== undefined) this.#works.set(expr, work);
    return work;
  }

  #work(expr: Expr, scope: readonly string[]): Work {
    if (!this.isDivided(expr)) return oneStep(this.compile(expr, scope));
    switch (expr.kind) {
      case 'fold':
        return foldWork(this, expr, scope);
      case 'optionalMap':
        return optionalMapWork(this, expr, scope);
      case 'bind':
        return bindWork(this, expr, scope);
      case 'call':
        return lazyWork(this, expr, scope) ?? this.#strictWork(expr, scope);
      default:
        return this.#strictWork(expr, scope);
    }
  }

  isConstant(expr: Expr): boolean {
    return this.#constants.valueOf(expr) !== undefined;
  }

  isReadAgain(expr: Expr, scope: readonly string[]): boolean {
    const isAttribute = this.#attributes.whole(expr, scope) !== undefined;
    return !isAttribute && mayBeOptional(this.#types.get(expr) ?? dynType);
  }

  wholeOf(expr: Expr, scope: readonly string[]): number {
    return this.#attributes.whole(expr, scope) ?? 0;
  }

  isDivided(expr: Expr): boolean {
    return this.#weightOf(expr) > undividedNodes;
  }

  /** Number of nodes that are evaluated; infinite if a macro or a long function is among them. */
  #weightOf(expr: Expr): number {
    let weight = this.#weights.get(expr);
    if (weight === undefined) {
      this.#pass?.pauseIfDue();
      const isLong =
        expr.kind === 'fold' ||
        (expr.kind === 'call' && this.#callsDivided(expr)) ||
        (expr.kind === 'struct' && this.#division === 'functions');
      weight = isLong ? Number.POSITIVE_INFINITY : 1;
      for (const operand of operandsOf(expr)) weight += this.#weightOf(operand);
      this.#weights.set(expr, weight);
      this.#pass?.spend(weighingWork);
    }
    return weight;
  }

  /** Whether a call may run a function that takes steps. A literal list is usually short. */
  #callsDivided(expr: CallExpr): boolean {
    const isThorough = this.#division === 'functions';
    if (!isThorough && expr.name === '@in' && expr.args[1]?.kind === 'list') return false;
    const { functions } = this.#environment;
    const declared = this.#declared.get(expr) ?? [];
    const name = namespacedName(expr, functions) ?? expr.name;
    const overloads = declared.length > 0 ? declared : (functions.get(name) ?? []);
    return overloads.some(
      ({ steps, isSeldomLong }) => steps !== undefined && (isThorough || !isSeldomLong),
    );
  }

  /** Evaluates the operands in their order, in steps, and then the node. */
  #strictWork(expr: Expr, scope: readonly string[]): Work {
    const isNamespaced =
      expr.kind === 'call' && namespacedName(expr, this.#environment.functions) !== undefined;
    const all = isNamespaced ? expr.args : operandsOf(expr);
    const operands = all.filter(({ kind }) => kind !== 'const');
    const works = operands.map((operand) => ({ operand, work: this.work(operand, scope) }));
    this.#evaluated = new Set(operands);
    const isSearch = expr.kind === 'call' && this.#constants.searched(expr) !== undefined;
    const last = isSearch ? oneStep(this.compile(expr, scope)) : this.#lastWork(expr, scope);
    this.#evaluated = new Set();
    const folded = this.#constants.valueOf(expr);
    if (folded !== undefined) return oneStep(constant(folded));
    const isEnd = expr.kind !== 'call' || endsAtFailure(expr.name, all);
    const isIndexed = expr.kind === 'call' && isIndex(expr.name);
    return function* (frame) {
      for (const { operand, work } of works) {
        const result = yield* outcomeSteps(work, frame);
        frame.operands.set(operand, result);
        if (isEnd && result instanceof CelError) break;
        if (isIndexed && isAbsent(result)) break;
      }
      return yield* last(frame);
    };
  }

  /** A node whose operands have been evaluated. */
  #lastWork(expr: Expr, scope: readonly string[]): Work {
    if (expr.kind === 'call' && this.#callsDivided(expr)) {
      return callWork(this.#callOf(expr, scope));
    }
    if (expr.kind !== 'struct') return oneStep(this.compile(expr, scope));
    const work = this.#structWork(expr, scope);
    return (frame) => work(frame, frame);
  }

  #ident(expr: Expr, name: string, scope: readonly string[]): Step {
    const slot = scope.lastIndexOf(name);
    // cel-go takes every name whose type is a type for the name of a type.
    const type = this.#types.get(expr) ?? dynType;
    const isType = type.name === 'type';
    if (isType && !typeNames.has(name)) {
      throw new CelError(`reference to undefined type: ${name}`);
    }
    if (slot >= 0 && !isType) {
      const step: Step = (frame) => {
        frame.spend(1);
        const value = frame.slots[slot];
        if (value === undefined) throw noSuchAttribute(name);
        return value instanceof Unreadable ? readSpecial(value, frame, slot) : value;
      };
      return mayBeOptional(type) ? attributeStep(step) : step;
    }
    const named = typeNames.get(name);
    if (named === undefined) throw noSuchAttribute(name);
    if (typesWithoutValue.has(name)) throw new CelError(`reference to undefined type: ${name}`);
    return constant(this.#constants.keep(expr, new TypeValue(longTypeName(named))));
  }

  #select(expr: SelectExpr, scope: readonly string[]): Step {
    const qualified = qualifiedName(expr)?.replace(/^\./, '');
    if (qualified !== undefined && typeNames.has(qualified))
      return this.#ident(expr, qualified, []);
    const constant = qualified === undefined ? undefined : enumValues.get(qualified);
    if (constant !== undefined) return () => constant;
    if (qualified !== undefined && scope.includes(qualified))
      return this.#ident(expr, qualified, scope);
    const operand = this.#memberOperand(expr.operand, scope);
    const { field } = expr;
    if (expr.test) {
      const cost = this.#attributes.test(expr.operand, scope);
      return (frame) => {
        frame.spend(cost);
        const whole = operand(frame);
        const found = hasField(whole, field);
        if (!found && whole instanceof Optional) frame.spend(-1);
        return found;
      };
    }
    const cost = this.#attributes.member(expr.operand, scope);
    const { optional } = expr;
    return (frame) => {
      if (!optional) frame.spend(cost);
      const whole = operand(frame);
      if (!optional && !(whole instanceof Optional)) return selectField(whole, field);
      const member = optionalField(whole, field);
      // An absent member is free.
      frame.spend((optional ? cost : 0) - (member.value === undefined ? 1 : 0));
      return member;
    };
  }

  /** An operand whose member is read, an attribute. */
  #memberOperand(expr: Expr, scope: readonly string[]): Step {
    const step = this.compile(expr, scope);
    return this.isReadAgain(expr, scope) ? attributeStep(step) : step;
  }

  #call(expr: CallExpr, scope: readonly string[]): Step {
    const lazy = lazyStep(this, expr, scope);
    if (lazy !== undefined) return lazy;
    const called = this.#callOf(expr, scope);
    const search = this.#search(expr, called);
    if (search !== undefined) return search;
    const step = callStep(called);
    if (!this.#constants.isConversion(expr)) return step;
    const meter = new Meter({ cost: Number.POSITIVE_INFINITY, work: workMax });
    return constant(this.#constants.keep(expr, step(meter.frame([]))));
  }

  /** A search in a constant list, which is free; undefined for other calls. */
  #search(expr: CallExpr, { steps: [item] }: Call): Step | undefined {
    const searched = this.#constants.searched(expr);
    if (searched === undefined || item === undefined) return undefined;
    // Without items, not even the operand is evaluated.
    if (searched.size === 0) return constant(this.#constants.keep(expr, false));
    return (frame) => searched.has(item(frame));
  }

  /**
   * Parses a literal pattern with the program. Throws `CelError` for an invalid one.
   * @returns the pattern if it has more parts than a new one may have
   */
  #storedPattern([, pattern]: readonly Expr[]): string | undefined {
    if (pattern?.kind !== 'const' || typeof pattern.value !== 'string') return undefined;
    const { value } = pattern;
    // A pass that pauses checks its patterns again. It would never end if each check were counted.
    if (this.#checkedPatterns.has(pattern)) return this.#checkedPatterns.get(pattern);
    const { exceedsParts } = checkLiteralPattern(value, this.#environment);
    const stored = exceedsParts ? value : undefined;
    this.#checkedPatterns.set(pattern, stored);
    this.#pass?.spend(value.length);
    return stored;
  }

  /** A call of a function with compiled arguments. */
  #callOf(expr: CallExpr, scope: readonly string[]): Call {
    const namespaced = namespacedName(expr, this.#environment.functions);
    const name = namespaced ?? expr.name;
    const target = namespaced === undefined ? expr.target : undefined;
    const isMember = target !== undefined;
    const args = isMember ? [target, ...expr.args] : expr.args;
    const storedPattern = searching.has(name) ? this.#storedPattern(args) : undefined;
    const steps = args.map((arg, position) =>
      isIndex(name) && position === 0 ? this.#memberOperand(arg, scope) : this.compile(arg, scope),
    );
    const [, index] = args;
    const constantIndex = index === undefined ? undefined : this.#constants.valueOf(index);
    if (isIndex(name) && constantIndex !== undefined) refuseQualifier(constantIndex);
    const declared = this.#declared.get(expr) ?? [];
    const others = this.#fitting(name, { isMember, count: args.length });
    const cost = isIndex(name) ? this.#attributes.index(args, scope) : 1;
    const [operand] = args;
    const indexed = isIndex(name) && operand !== undefined ? operand : undefined;
    // Without a value, the index is not evaluated, and an absent item is free.
    const absentCost =
      indexed === undefined ? undefined : this.#attributes.member(indexed, scope) - 1;
    const ends = endsAtFailure(name, args);
    const hasLiteralPattern = name === 'matches' && constantIndex !== undefined;
    const costs = { cost, absentCost, endsAtFailure: ends };
    return { name, declared, others, steps, ...costs, hasLiteralPattern, storedPattern };
  }

  /** The overloads of a function for a number of arguments. */
  #fitting(
    name: string,
    { isMember, count }: { readonly isMember: boolean; readonly count: number },
  ): readonly Overload[] {
    const key = `${name}/${isMember}/${count}`;
    let fitting = this.#fittingOverloads.get(key);
    if (fitting === undefined) {
      const all = this.#environment.functions.get(name) ?? [];
      fitting = all.filter(
        (overload) => overload.isMember === isMember && overload.params.length === count,
      );
      this.#fittingOverloads.set(key, fitting);
    }
    return fitting;
  }

  #list(expr: Extract<Expr, { kind: 'list' }>, scope: readonly string[]): Step {
    const steps = expr.items.map(({ value }) => this.compile(value, scope));
    const folded = this.#constants.list(expr);
    if (folded !== undefined) return constant(folded);
    if (expr.items.every((item) => !item.optional)) {
      return (frame) => {
        frame.spend(10);
        return new List(steps.map((step) => step(frame)));
      };
    }
    return (frame) => {
      frame.spend(10);
      const items: Value[] = [];
      steps.forEach((step, index) => {
        const value = step(frame);
        const isOptional = expr.items[index]?.optional === true;
        const item = isOptional ? optionalOf(value, 'list element').value : value;
        if (item !== undefined) items.push(item);
      });
      return new List(items);
    };
  }

  #struct(expr: StructExpr, scope: readonly string[]): Step {
    const work = this.#structWork(expr, scope);
    return (frame) => runInOnePiece(work(frame, frame.atOnce));
  }

  /** The construction of an object, in steps unless the context has none. */
  #structWork(expr: StructExpr, scope: readonly string[]) {
    const name = expr.name.replace(/^\./, '');
    const struct = structNamed(name, this.#environment);
    if (struct === undefined) throw new CelError(`unknown type: ${expr.name}`);
    const steps = expr.fields.map((field) => ({
      ...field,
      step: this.compile(field.value, scope),
    }));
    return function* (frame: Frame, context: CallContext): Generator<void, Value> {
      frame.spend(40);
      const fields = new Map<string, Value>();
      for (const { name: field, step, optional } of steps) {
        const fieldValue = step(frame);
        const value = optional ? optionalOf(fieldValue, `entry '${field}'`).value : fieldValue;
        if (value !== undefined) fields.set(field, value);
      }
      if (struct.make === undefined) return new StructValue(name, fields);
      return yield* struct.make(fields, context);
    };
  }

  #map(expr: Extract<Expr, { kind: 'map' }>, scope: readonly string[]): Step {
    const steps = expr.entries.map((entry) => ({
      key: this.compile(entry.key, scope),
      value: this.compile(entry.value, scope),
      optional: entry.optional,
    }));
    const folded = this.#constants.map(expr);
    if (folded !== undefined) return constant(folded);
    return (frame) => {
      frame.spend(30);
      const entries = new Map<string, readonly [Value, Value]>();
      for (const step of steps) {
        const key = step.key(frame);
        const entryValue = step.value(frame);
        const value = step.optional
          ? optionalOf(entryValue, `entry '${showValue(key)}'`).value
          : entryValue;
        if (value !== undefined) setEntry(entries, key, value);
      }
      return new EntryMap(entries);
    };
  }
}

function optionalOf(value: Value, place: string): Optional {
  if (value instanceof Optional) return value;
  const shown = showValue(value);
  throw new CelError(`cannot initialize optional ${place} from non-optional value ${shown}`);
}

/** A member of a value; undefined if it is absent or the value has no members. */
function memberOf(operand: Value, field: string): Value | undefined {
  if (isMapValue(operand)) return operand.get(field);
  if (operand instanceof List) throw new CelError("unsupported index type 'string' in list");
  return undefined;
}

function selectField(operand: Value, field: string): Value {
  const value = memberOf(operand, field);
  if (value === undefined) throw new CelError(`no such key: ${field}`);
  return value;
}

function optionalField(operand: Value, field: string): Optional {
  if (!(operand instanceof Optional)) return new Optional(memberOf(operand, field));
  const { value } = operand;
  return value === undefined ? operand : new Optional(memberOf(value, field));
}

function hasField(operand: Value, field: string): boolean {
  const inner = operand instanceof Optional ? operand.value : operand;
  return inner !== undefined && memberOf(inner, field) !== undefined;
}
