import { isObject, type JsonValue, member } from '@wheelhouse/machinery';
import { FunctionError, functions, type GoFunction } from './functions.ts';
import { TemplateError } from './lex.ts';
import {
  type Command,
  mainName,
  type Node,
  type Operand,
  operandText,
  type Pipe,
  type Templates,
} from './parse.ts';
import {
  box,
  formatPlain,
  type GoValue,
  goBool,
  goInt,
  goText,
  isTrue,
  none,
  sortedNames,
  staticType,
  typeName,
  unbox,
} from './values.ts';

/** Limits of a template's execution. */
interface TemplateLimits {
  readonly stepsMax: number;
  /** Length of the output in UTF-16 units. */
  readonly lengthMax: number;
  /** Depth of nested template calls. */
  readonly callsMax: number;
}

/** Far above the needs of listings, and low enough not to block or exhaust a machine. */
const defaultLimits: TemplateLimits = {
  stepsMax: 20_000_000,
  lengthMax: 64 * 1024 * 1024,
  callsMax: 500,
};

/** A failed execution; `written` is the output before the failure. */
export class TemplateRunError extends TemplateError {
  readonly written: string;

  constructor(message: string, written: string) {
    super(message);
    this.name = 'TemplateRunError';
    this.written = written;
  }
}

/**
 * Executes a template like Go. Throws TemplateRunError, in Go's wording, for an error in the
 * template and for an exceeded limit.
 * @param options.strict whether a missing key is an error instead of `<no value>`
 */
export function runGoTemplate(
  templates: Templates,
  data: JsonValue,
  options: { readonly strict?: boolean; readonly limits?: TemplateLimits } = {},
): string {
  const { strict = false, limits = defaultLimits } = options;
  return new Run(templates, { strict, limits }).main(data);
}

interface Variable {
  readonly name: string;
  value: GoValue;
}

/** The position of a node and its text, for messages. */
type Place = { readonly at: number; readonly text: string };

/** The statement that leaves a loop body early, if any. */
type Jump = 'break' | 'continue' | undefined;

class Run {
  readonly #templates: Templates;
  readonly #strict: boolean;
  readonly #limits: TemplateLimits;
  #parts: string[] = [];
  #length = 0;
  #steps = 0;
  #calls = 0;
  #name = mainName;
  #variables: Variable[] = [];
  #place: Place = { at: 0, text: '' };

  constructor(
    templates: Templates,
    options: { readonly strict: boolean; readonly limits: TemplateLimits },
  ) {
    this.#templates = templates;
    this.#strict = options.strict;
    this.#limits = options.limits;
  }

  main(data: JsonValue): string {
    const dot: GoValue = { ...box(data), boxed: false };
    this.#variables = [{ name: '$', value: dot }];
    this.#walk(this.#templates.byName.get(mainName) ?? [], dot);
    return this.#parts.join('');
  }

  #fail(message: string): never {
    const { at, text } = this.#place;
    const before = this.#templates.source.slice(0, at);
    const lineStart = before.lastIndexOf('\n') + 1;
    const line = before.split('\n').length;
    const column = Buffer.byteLength(before.slice(lineStart));
    throw new TemplateRunError(
      `template: ${mainName}:${line}:${column}: executing ${JSON.stringify(this.#name)} ` +
        `at <${text}>: ${message}`,
      this.#parts.join(''),
    );
  }

  #step(): void {
    this.#steps += 1;
    if (this.#steps > this.#limits.stepsMax) this.#fail('the template takes too many steps');
  }

  checkLength(length: number): void {
    if (this.#length + length > this.#limits.lengthMax) this.#fail('the template writes too much');
  }

  #write(text: string): void {
    this.checkLength(text.length);
    this.#length += text.length;
    this.#parts.push(text);
  }

  #walk(nodes: readonly Node[], dot: GoValue): Jump {
    for (const node of nodes) {
      this.#step();
      const jump = this.#node(node, dot);
      if (jump !== undefined) return jump;
    }
    return undefined;
  }

  #node(node: Node, dot: GoValue): Jump {
    switch (node.type) {
      case 'text':
        this.#write(node.text);
        return undefined;
      case 'action': {
        const value = this.#pipe(node.pipe, dot);
        if (node.pipe.variables.length === 0) {
          this.#write(value.kind === 'none' ? '<no value>' : formatPlain(value));
        }
        return undefined;
      }
      case 'template':
        this.#template(node, dot);
        return undefined;
      case 'break':
      case 'continue':
        return node.type;
      case 'range':
        return this.#range(node, dot);
      default:
        return this.#branch(node, dot);
    }
  }

  #branch(node: Node & { readonly type: 'if' | 'with' | 'range' }, dot: GoValue): Jump {
    const variableCount = this.#variables.length;
    const value = this.#pipe(node.pipe, dot);
    const inner = node.type === 'with' ? value : dot;
    const jump = isTrue(value) ? this.#walk(node.body, inner) : this.#walk(node.elseBody, dot);
    this.#variables.length = variableCount;
    return jump;
  }

  #range(node: Node & { readonly type: 'if' | 'with' | 'range' }, dot: GoValue): Jump {
    const variableCount = this.#variables.length;
    const { variables, assigns } = node.pipe;
    const collection = this.#pipe(node.pipe, dot);
    const outerCount = this.#variables.length;
    let jump: Jump;
    for (const { key, value } of this.#entries(collection)) {
      this.#step();
      const [first, second] = valueAndKey(variables);
      if (first !== undefined) this.#setLoopVariable(first, { value, assigns, from: outerCount });
      if (second !== undefined)
        this.#setLoopVariable(second, { value: key, assigns, from: outerCount });
      jump = this.#walk(node.body, value);
      this.#variables.length = outerCount;
      if (jump === 'break') break;
    }
    this.#variables.length = variableCount;
    return isTrue(collection) ? undefined : this.#walk(node.elseBody, dot);
  }

  #entries(collection: GoValue): { readonly key: GoValue; readonly value: GoValue }[] {
    const { value } = collection;
    if (collection.kind === 'none') return [];
    if (Array.isArray(value)) {
      return value.map((item, at) => ({ key: goInt(at), value: box(item) }));
    }
    if (!isObject(value)) return this.#fail(`range can't iterate over ${formatPlain(collection)}`);
    return sortedNames(value).map((name) => ({
      key: goText(name),
      value: box(value[name] ?? null),
    }));
  }

  #setLoopVariable(
    name: string,
    { value, assigns, from }: { value: GoValue; assigns: boolean; from: number },
  ): void {
    if (assigns) {
      this.#assign(name, value);
      return;
    }
    const declared = this.#variables.findLastIndex((variable) => variable.name === name);
    if (declared >= from) this.#variables[declared] = { name, value };
    else this.#variables.push({ name, value });
  }

  #assign(name: string, value: GoValue): void {
    const variable = this.#variables.findLast((candidate) => candidate.name === name);
    if (variable === undefined) this.#fail(`undefined variable: ${name}`);
    variable.value = value;
  }

  #template(node: Node & { readonly type: 'template' }, dot: GoValue): void {
    this.#place = node;
    const nodes = this.#templates.byName.get(node.name);
    if (nodes === undefined) this.#fail(`template ${JSON.stringify(node.name)} not defined`);
    if (this.#calls >= this.#limits.callsMax) {
      this.#fail(`exceeded maximum template depth (${this.#limits.callsMax})`);
    }
    const inner = node.pipe === undefined ? none : this.#pipe(node.pipe, dot);
    const outer = { name: this.#name, variables: this.#variables };
    this.#calls += 1;
    this.#name = node.name;
    this.#variables = [{ name: '$', value: inner }];
    this.#walk(nodes, inner);
    this.#calls -= 1;
    this.#name = outer.name;
    this.#variables = outer.variables;
  }

  #pipe(pipe: Pipe, dot: GoValue): GoValue {
    this.#place = pipe;
    let value: GoValue | undefined;
    for (const command of pipe.commands) value = unbox(this.#command(command, dot, value));
    const result = value ?? none;
    for (const name of pipe.variables) {
      if (pipe.assigns) this.#assign(name, result);
      else this.#variables.push({ name, value: result });
    }
    return result;
  }

  /** Runs a command. `last` is the result of the previous one in the pipe and the last argument. */
  #command(command: Command, dot: GoValue, last: GoValue | undefined): GoValue {
    this.#step();
    const [first, ...args] = command.operands;
    if (first === undefined) return none;
    if (first.type === 'identifier') return this.#call(command, dot, last);
    const hasArguments = args.length > 0 || last !== undefined;
    if (first.type === 'field' || first.type === 'chain' || first.type === 'variable') {
      return this.#operand(first, dot, hasArguments);
    }
    this.#place = first;
    if (hasArguments) this.#fail(`can't give argument to non-function ${operandText(first)}`);
    if (first.type === 'nil') this.#fail('nil is not a command');
    return this.#operand(first, dot);
  }

  #operand(operand: Operand, dot: GoValue, hasArguments = false): GoValue {
    this.#place = operand;
    switch (operand.type) {
      case 'dot':
        return dot;
      case 'nil':
        return none;
      case 'bool':
        return goBool(operand.value);
      case 'number':
        return { kind: operand.isFloat ? 'float64' : 'int', value: operand.value, boxed: false };
      case 'string':
        return goText(operand.value);
      case 'pipe':
        return this.#pipe(operand.pipe, dot);
      case 'identifier': {
        const { at, text } = operand;
        return this.#call({ at, text, operands: [operand] }, dot, undefined);
      }
      case 'field':
        return this.#fields(dot, operand.names, hasArguments);
      case 'variable':
        return this.#variable(operand, hasArguments);
      case 'chain':
        return this.#fields(this.#operand(operand.operand, dot), operand.names, hasArguments);
    }
  }

  #variable(operand: Operand & { readonly type: 'variable' }, hasArguments: boolean): GoValue {
    const variable = this.#variables.findLast((candidate) => candidate.name === operand.name);
    if (variable === undefined) return this.#fail(`undefined variable: ${operand.name}`);
    if (operand.names.length > 0) return this.#fields(variable.value, operand.names, hasArguments);
    if (hasArguments) this.#fail(`can't give argument to non-function ${operand.text}`);
    return variable.value;
  }

  #fields(value: GoValue, names: readonly string[], hasArguments: boolean): GoValue {
    let at = value;
    for (const [index, name] of names.entries()) {
      at = this.#field(at, name, hasArguments && index === names.length - 1);
    }
    return at;
  }

  #field(target: GoValue, name: string, hasArguments: boolean): GoValue {
    if (target.kind === 'none') {
      if (this.#strict) this.#fail(`nil data; no entry for key ${JSON.stringify(name)}`);
      return none;
    }
    if (target.kind === 'nil') this.#fail(`nil pointer evaluating ${staticType(target)}.${name}`);
    if (!isObject(target.value)) {
      return this.#fail(`can't evaluate field ${name} in type ${staticType(target)}`);
    }
    if (hasArguments) this.#fail(`${name} is not a method but has arguments`);
    const memberValue = member(target.value, name);
    if (memberValue !== undefined) return box(memberValue);
    if (this.#strict) this.#fail(`map has no entry for key ${JSON.stringify(name)}`);
    return none;
  }

  #call(command: Command, dot: GoValue, last: GoValue | undefined): GoValue {
    const [callee, ...operands] = command.operands;
    if (callee?.type !== 'identifier') return none;
    const { name } = callee;
    this.#place = callee;
    const count = operands.length + (last === undefined ? 0 : 1);
    if (name === 'and' || name === 'or') return this.#junction(command, { dot, last, count });
    const definition = functions.get(name);
    if (definition === undefined)
      return this.#fail(`${JSON.stringify(name)} is not a defined function`);
    this.#checkCount(name, definition, count);
    const args = operands.map((operand, at) =>
      this.#argument(operand, dot, at < (definition.textArgs ?? 0)),
    );
    if (last !== undefined)
      args.push(this.#lastArgument(last, args.length < (definition.textArgs ?? 0)));
    try {
      return definition.call(args, this);
    } catch (error) {
      if (!(error instanceof FunctionError)) throw error;
      this.#place = command;
      return this.#fail(`error calling ${name}: ${error.message}`);
    }
  }

  #checkCount(name: string, { minArgs, maxArgs }: Omit<GoFunction, 'call'>, count: number): void {
    const expected = minArgs === maxArgs ? `${minArgs}` : `at least ${minArgs}`;
    if (count < minArgs || count > maxArgs) {
      this.#fail(`wrong number of args for ${name}: want ${expected} got ${count}`);
    }
  }

  /** Evaluates the arguments of `and` and `or` up to the one that decides. */
  #junction(
    command: Command,
    { dot, last, count }: { dot: GoValue; last: GoValue | undefined; count: number },
  ): GoValue {
    const [callee, ...operands] = command.operands;
    const name = callee?.type === 'identifier' ? callee.name : '';
    this.#checkCount(name, { minArgs: 1, maxArgs: Number.POSITIVE_INFINITY }, count);
    let value = none;
    for (const operand of operands) {
      value = unbox(this.#argument(operand, dot, false));
      if (isTrue(value) === (name === 'or')) return value;
    }
    return last ?? value;
  }

  #argument(operand: Operand, dot: GoValue, isText: boolean): GoValue {
    if (isText && ['bool', 'number', 'nil'].includes(operand.type)) {
      this.#place = operand;
      if (operand.type === 'nil') this.#fail('cannot assign nil to string');
      this.#fail(`expected string; found ${operand.text}`);
    }
    const value = this.#operand(operand, dot);
    return isText ? this.#textArgument(value) : value;
  }

  #lastArgument(value: GoValue, isText: boolean): GoValue {
    return isText ? this.#textArgument(value) : value;
  }

  #textArgument(value: GoValue): GoValue {
    const plain = unbox(value);
    if (plain.kind === 'none') this.#fail('invalid value; expected string');
    if (plain.kind === 'string') return plain;
    return this.#fail(`wrong type for value; expected string; got ${typeName(plain)}`);
  }
}

/** Returns the variables of a range. With two, the first is the key; a single one is the value. */
function valueAndKey(
  variables: readonly string[],
): readonly [value: string | undefined, key: string | undefined] {
  return variables.length > 1 ? [variables[1], variables[0]] : [variables[0], undefined];
}
