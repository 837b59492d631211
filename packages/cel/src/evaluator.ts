import type { Checked } from './checker.ts';
import { type Compiles, foldStep, outcome, type Step, setEntry } from './folds.ts';
import { shownKey } from './library/arithmetic.ts';
import { patternOf } from './library/strings.ts';
import {
  type CallExpr,
  type Expr,
  type Literal,
  qualifiedName,
  type SelectExpr,
  type StructExpr,
} from './syntax/ast.ts';
import { enumValues, typesWithoutValue } from './syntax/messages.ts';
import { type Environment, namespacedName, structNamed, typeNames } from './types/environment.ts';
import { accepts, noSuchOverload, type Overload } from './types/functions.ts';
import {
  CelCostError,
  CelError,
  EntryMap,
  isMapValue,
  List,
  longTypeName,
  Optional,
  StructValue,
  TypeValue,
  Uint,
  type Value,
} from './values.ts';

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
}

/** The result of an evaluation and its cost. */
export type Measured = { readonly cost: number } & (
  | { readonly value: Value; readonly error?: never }
  | { readonly error: CelError }
);

/** Options for compiling a tree to a program. */
interface ProgramOptions {
  readonly environment: Environment;
  /** The overloads that match the declared types of calls, because lists are untyped at runtime. */
  readonly declared: Checked['overloads'];
}

/** Compiles a tree to a program. Throws `CelError` if constants alone prove a failure. */
export function program(expr: Expr, options: ProgramOptions): Program {
  const names = [...options.environment.variables.keys()];
  const compiler = new Compiler(options);
  const step = compiler.compile(expr, names);
  const frameOf = (variables: ReadonlyMap<string, Value>, costMax: number) => {
    const meter = { cost: 0 };
    const slots = names.map((name) => variables.get(name));
    const spend = (amount: number) => {
      meter.cost += amount;
      if (meter.cost > costMax) {
        throw new CelCostError('operation cancelled: actual cost limit exceeded');
      }
    };
    return { frame: { slots, spend }, meter };
  };
  return {
    run(variables, costMax) {
      const { frame, meter } = frameOf(variables, costMax);
      return { value: step(frame), cost: meter.cost };
    },
    measure(variables, costMax) {
      const { frame, meter } = frameOf(variables, costMax);
      try {
        return { value: step(frame), cost: meter.cost };
      } catch (error) {
        if (!(error instanceof CelError)) throw error;
        return { error, cost: meter.cost };
      }
    },
  };
}

const noSuchAttribute = (name: string) => new CelError(`no such attribute(s): ${name}`);

/** Literal patterns are compiled with the program. Throws `CelError` for an invalid one. */
function checkPattern(name: string, [, pattern]: readonly Expr[]): void {
  if (name !== 'find' && name !== 'findAll') return;
  if (pattern?.kind === 'const' && typeof pattern.value === 'string') patternOf(pattern.value);
}

const conversions = new Set('bool bytes double duration int string timestamp uint'.split(' '));

/** Compiles nodes to steps; `scope` lists the variables by slot. */
class Compiler implements Compiles {
  readonly #environment: Environment;
  readonly #declared: ProgramOptions['declared'];

  constructor({ environment, declared }: ProgramOptions) {
    this.#environment = environment;
    this.#declared = declared;
  }

  compile(expr: Expr, scope: readonly string[]): Step {
    switch (expr.kind) {
      case 'const': {
        const value = literalValue(expr.value);
        return () => value;
      }
      case 'ident':
        return this.#ident(expr.name.replace(/^\./, ''), scope);
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
      case 'optionalMap': {
        const target = this.compile(expr.target, scope);
        const slot = scope.length;
        const body = this.compile(expr.body, [...scope, expr.variable]);
        return (frame) => {
          const optional = target(frame);
          if (!(optional instanceof Optional)) throw noSuchOverload();
          if (optional.value === undefined) return optional;
          frame.slots[slot] = optional.value;
          const value = body(frame);
          return expr.flat ? value : new Optional(value);
        };
      }
      case 'bind': {
        const value = this.compile(expr.value, scope);
        const slot = scope.length;
        const body = this.compile(expr.body, [...scope, expr.variable]);
        return (frame) => {
          frame.slots[slot] = value(frame);
          return body(frame);
        };
      }
      case 'struct':
        return this.#struct(expr, scope);
    }
  }

  #ident(name: string, scope: readonly string[]): Step {
    const slot = scope.lastIndexOf(name);
    if (slot >= 0) {
      return (frame) => {
        frame.spend(1);
        const value = frame.slots[slot];
        if (value === undefined) throw noSuchAttribute(name);
        return value;
      };
    }
    const type = typeNames.get(name);
    if (type === undefined) throw noSuchAttribute(name);
    if (typesWithoutValue.has(name)) throw new CelError(`reference to undefined type: ${name}`);
    const value = new TypeValue(longTypeName(type));
    return () => value;
  }

  #select(expr: SelectExpr, scope: readonly string[]): Step {
    const qualified = qualifiedName(expr)?.replace(/^\./, '');
    if (qualified !== undefined && typeNames.has(qualified)) return this.#ident(qualified, []);
    const constant = qualified === undefined ? undefined : enumValues.get(qualified);
    if (constant !== undefined) return () => constant;
    if (qualified !== undefined && scope.includes(qualified)) return this.#ident(qualified, scope);
    const operand = this.compile(expr.operand, scope);
    const { field } = expr;
    if (expr.test) return (frame) => hasField(operand(frame), field);
    if (expr.optional) return (frame) => optionalField(operand(frame), field);
    return (frame) => selectField(operand(frame), field);
  }

  #call(expr: CallExpr, scope: readonly string[]): Step {
    if (expr.target === undefined) {
      const lazy = this.#lazyOperator(expr, scope);
      if (lazy !== undefined) return lazy;
    }
    const namespaced = namespacedName(expr, this.#environment.functions);
    const name = namespaced ?? expr.name;
    const target = namespaced === undefined ? expr.target : undefined;
    const isMember = target !== undefined;
    const args = isMember ? [target, ...expr.args] : expr.args;
    refuseQualifier(name, args);
    checkPattern(name, args);
    const steps = args.map((arg) => this.compile(arg, scope));
    const all = this.#environment.functions.get(name) ?? [];
    const fitting = all.filter(
      (one) => one.isMember === isMember && one.params.length === args.length,
    );
    const declared = this.#declared.get(expr) ?? [];
    const overloads = declared.length === 0 ? fitting : [...new Set([...declared, ...fitting])];
    const step = callStep(name, overloads, steps);
    const isConstant = conversions.has(name) && args.length === 1 && args[0]?.kind === 'const';
    if (!isConstant) return step;
    const value = step({ slots: [], spend: () => undefined });
    return () => value;
  }

  #lazyOperator({ name, args }: CallExpr, scope: readonly string[]): Step | undefined {
    if (name !== '_&&_' && name !== '_||_' && name !== '_?_:_') return undefined;
    const [first, second, third] = args.map((arg) => this.compile(arg, scope));
    if (first === undefined || second === undefined) return undefined;
    if (third !== undefined) {
      return (frame) => {
        const condition = first(frame);
        if (typeof condition !== 'boolean') throw noSuchOverload();
        return condition ? second(frame) : third(frame);
      };
    }
    return logicStep(first, second, { name, decides: name === '_||_' });
  }

  #list(expr: Extract<Expr, { kind: 'list' }>, scope: readonly string[]): Step {
    const steps = expr.items.map(({ value }) => this.compile(value, scope));
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
        const item = isOptional ? optionalOf(value).value : value;
        if (item !== undefined) items.push(item);
      });
      return new List(items);
    };
  }

  #struct(expr: StructExpr, scope: readonly string[]): Step {
    const name = expr.name.replace(/^\./, '');
    const struct = structNamed(name, this.#environment);
    if (struct === undefined) throw new CelError(`unknown type: ${expr.name}`);
    const steps = expr.fields.map((field) => ({
      ...field,
      step: this.compile(field.value, scope),
    }));
    return (frame) => {
      frame.spend(40);
      const fields = new Map<string, Value>();
      for (const { name: field, step, optional } of steps) {
        const fieldValue = step(frame);
        const value = optional ? optionalOf(fieldValue).value : fieldValue;
        if (value !== undefined) fields.set(field, value);
      }
      return struct.make === undefined ? new StructValue(name, fields) : struct.make(fields, frame);
    };
  }

  #map(expr: Extract<Expr, { kind: 'map' }>, scope: readonly string[]): Step {
    const steps = expr.entries.map((entry) => ({
      key: this.compile(entry.key, scope),
      value: this.compile(entry.value, scope),
      optional: entry.optional,
    }));
    return (frame) => {
      frame.spend(30);
      const entries = new Map<string, readonly [Value, Value]>();
      for (const step of steps) {
        const key = step.key(frame);
        const entryValue = step.value(frame);
        const value = step.optional ? optionalOf(entryValue).value : entryValue;
        if (value !== undefined) setEntry(entries, key, value);
      }
      return new EntryMap(entries);
    };
  }
}

function optionalOf(value: Value): Optional {
  if (value instanceof Optional) return value;
  throw new CelError('cannot initialize optional entry from non-optional value');
}

function refuseQualifier(name: string, args: readonly Expr[]): void {
  const argument = args[1];
  const isDyn =
    argument?.kind === 'call' && argument.name === 'dyn' && argument.target === undefined;
  const index = isDyn ? argument.args[0] : argument;
  if (name !== '_[_]' || index?.kind !== 'const') return;
  if (index.value === null) throw new CelError('invalid qualifier type: types.Null');
  if (index.value instanceof Uint8Array) {
    throw new CelError('invalid qualifier type: types.Bytes');
  }
}

/** Indexing a value without content reports a missing key, as in cel-go. */
function unknownCall(name: string, args: readonly Value[]): CelError {
  const [operand, key] = args;
  const isScalar = operand !== undefined && !(operand instanceof List) && !isMapValue(operand);
  if (name !== '_[_]' || !isScalar) return noSuchOverload({ name, args });
  return new CelError(`no such key: ${shownKey(key ?? null)}`);
}

function callStep(name: string, overloads: readonly Overload[], steps: readonly Step[]): Step {
  const [only] = overloads;
  return (frame) => {
    const args = steps.map((step) => step(frame));
    frame.spend(1);
    const first = only !== undefined && accepts(only, args) ? only : undefined;
    const found = first ?? overloads.find((overload) => accepts(overload, args));
    if (found === undefined) throw unknownCall(name, args);
    return found.run(args, frame);
  };
}

/** `&&` and `||`: a deciding operand absorbs a failure of the other one. */
function logicStep(left: Step, right: Step, at: { name: string; decides: boolean }): Step {
  return (frame) => {
    const one = outcome(left, frame);
    if (one === at.decides) return one;
    const other = outcome(right, frame);
    if (other === at.decides) return other;
    if (one instanceof CelError) throw one;
    if (other instanceof CelError) throw other;
    if (typeof one !== 'boolean' || typeof other !== 'boolean') throw noSuchOverload();
    return !at.decides;
  };
}

export function literalValue(value: Literal): Value {
  if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) {
    return new Uint(value.uint);
  }
  return value;
}

/** A member of a value; undefined if it is absent or the value has no members. */
function memberOf(operand: Value, field: string): Value | undefined {
  if (isMapValue(operand)) return operand.get(field);
  if (operand instanceof List) throw new CelError("unsupported index type 'string' in list");
  return undefined;
}

function selectField(operand: Value, field: string): Value {
  if (operand instanceof Optional) return optionalField(operand, field);
  const value = memberOf(operand, field);
  if (value === undefined) throw new CelError(`no such key: ${field}`);
  return value;
}

function optionalField(operand: Value, field: string): Value {
  if (!(operand instanceof Optional)) return new Optional(memberOf(operand, field));
  const { value } = operand;
  return value === undefined ? operand : new Optional(memberOf(value, field));
}

function hasField(operand: Value, field: string): Value {
  const inner = operand instanceof Optional ? operand.value : operand;
  return inner !== undefined && memberOf(inner, field) !== undefined;
}
