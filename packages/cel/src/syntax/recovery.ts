import { itemAt } from '@wheelhouse/machinery';
import { type Issue, nowhere } from '../issues.ts';
import {
  type DecisionState,
  firstOf,
  type Lookahead,
  nothing,
  type RuleName,
  type State,
  showTypes,
  startOf,
  type TokenSet,
  typeNumber,
  typeOf,
} from './grammar.ts';
import type { Token, Tokens } from './lexer.ts';

/** A part of an expression as the rules of the grammar divide it. */
export interface TreeNode {
  readonly rule: RuleName;
  /** The number of the alternative; -1 if none was chosen. */
  way: number;
  readonly first: Token;
  readonly parts: (TreeNode | Token)[];
}

/** A rule that is being read. */
interface Frame {
  node: TreeNode;
  readonly precedence: number;
  /** The state behind the rule in the rule around it; absent for the first rule. */
  readonly next: State | undefined;
  readonly parent: Frame | undefined;
  /** Number of rules of the same name that are being read. */
  readonly depth: number;
}

/** Maximum nesting of one rule. */
const depthMax = 250;
/** Maximum number of attempts to recover, and of the tokens that one attempt skips. */
const attemptsMax = 30;
const skippedMax = 256;
/** Maximum number of syntax errors that do not end the parsing. */
const errorsMax = 100;
/** Number of states between two pauses. */
const statesPerStep = 2_000;

/** Ends the parsing without a tree. */
class Abandoned extends Error {}

/**
 * Parses tokens, some of which are wrong, in steps, and adds the syntax errors to the issues. Like
 * cel-go's parser, it deletes or inserts a token where that suffices, and otherwise skips tokens
 * up to one that may follow a rule that is being read. Returns the tree, or undefined if there are
 * too many errors.
 * @param source the text, from which messages quote
 */
export function* recoverySteps(
  source: string,
  { tokens, gaps }: Tokens,
  issues: Issue[],
): Generator<void, TreeNode | undefined> {
  try {
    const recovery = new Recovery(source, { tokens, gaps }, issues);
    for (let states = 1; recovery.isReading; states += 1) {
      recovery.step();
      if (states % statesPerStep === 0) yield;
    }
    return recovery.root;
  } catch (error) {
    if (error instanceof Abandoned) return undefined;
    throw error;
  }
}

class Recovery {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  readonly #gaps: Tokens['gaps'];
  /** The types of the tokens that were read. */
  readonly #types: Int8Array;
  readonly #issues: Issue[];
  #at = 0;
  #state: State = startOf('start');
  #frame: Frame | undefined;
  readonly root: TreeNode;
  /** Whether no token was read since the last error, so that further errors are not reported. */
  #isRecovering = false;
  /** Where recovery began without reading a token since, to recover differently there. */
  #lastAt = -1;
  readonly #lastStates = new Set<State>();
  #attempts = 0;
  #errors = 0;
  readonly #depths = new Map<RuleName, number>();

  constructor(source: string, { tokens, gaps }: Tokens, issues: Issue[]) {
    this.#source = source;
    this.#gaps = gaps;
    this.#tokens = tokens;
    this.#types = new Int8Array(tokens.length).fill(unread);
    this.#issues = issues;
    for (const { at, length } of gaps) {
      this.#addError(at, `token recognition error at: '${source.slice(at, at + length)}'`);
    }
    this.root = { rule: 'start', way: -1, first: itemAt(tokens, 0), parts: [] };
    this.#frame = {
      node: this.root,
      precedence: 0,
      next: undefined,
      parent: undefined,
      depth: 1,
    };
  }

  get isReading(): boolean {
    return this.#frame !== undefined;
  }

  step(): void {
    const frame = this.#frame;
    const state = this.#state;
    if (frame === undefined) return;
    if (state.kind === 'token') this.#match(frame, state.set, state.next);
    else if (state.kind === 'rule') this.#enter(frame, state.rule, state);
    else if (state.kind === 'end') this.#leave(frame);
    else if (this.#isSynchronized(frame, state)) this.#decide(frame, state);
  }

  #typeAt(distance: number): number {
    const index = Math.min(this.#at + distance, this.#tokens.length) - 1;
    let type = this.#types[index] ?? unread;
    if (type === unread) {
      type = typeBehind(itemAt(this.#tokens, index), this.#tokens[index - 1]);
      this.#types[index] = type;
    }
    return type;
  }

  get #current(): Token {
    return itemAt(this.#tokens, this.#at);
  }

  #take(): void {
    if (this.#at < this.#tokens.length - 1) this.#at += 1;
  }

  #enter(
    parent: Frame,
    rule: RuleName,
    { precedence, next }: { readonly precedence: number; readonly next: State },
  ): void {
    const depth = (this.#depths.get(rule) ?? 0) + 1;
    if (depth > depthMax) this.#abandon(`expression recursion limit exceeded: ${depthMax}`);
    this.#depths.set(rule, depth);
    const node = { rule, way: -1, first: this.#current, parts: [] };
    this.#frame = { node, precedence, next, parent, depth };
    this.#state = startOf(rule);
  }

  #leave({ node, depth, next, parent }: Frame): void {
    this.#depths.set(node.rule, depth - 1);
    // Most rules only pass on their one part.
    parent?.node.parts.push(onlyPart(node) ?? node);
    this.#frame = parent;
    if (next !== undefined) this.#state = next;
  }

  #match(frame: Frame, set: TokenSet, next: State): void {
    if (!set.has(this.#typeAt(1)) && !this.#recoverInline(frame, set, next)) return;
    this.#noteMatch();
    frame.node.parts.push(this.#current);
    this.#take();
    this.#state = next;
  }

  /**
   * Deletes the wrong token and returns true, or inserts one or skips further ones and returns
   * false.
   */
  #recoverInline(frame: Frame, set: TokenSet, next: State): boolean {
    this.#countAttempt();
    if (this.#deleteToken(frame)) return true;
    if (this.#expectedAt(next, frame).has(this.#typeAt(1))) {
      const { at, text } = this.#current;
      this.#report(at, `missing ${this.#expected(frame)} at ${quoted(text)}`);
      frame.node.parts.push(this.#missingToken(set));
      this.#state = next;
    } else this.#failMismatched(frame);
    return false;
  }

  /** The token that stands for a missing one: a name is as good as any. */
  #missingToken(set: TokenSet): Token {
    const last = this.#at > 0 && this.#at === this.#tokens.length - 1 ? this.#at - 1 : this.#at;
    const { at } = itemAt(this.#tokens, last);
    const kind = set.has(typeNumber('IDENTIFIER')) ? 'name' : 'operator';
    return { kind, text: showTypes(set).replaceAll("'", ''), at };
  }

  /** Deletes the next token if the one behind it is expected here. */
  #deleteToken(frame: Frame): boolean {
    if (!this.#expectedAt(this.#state, frame).has(this.#typeAt(2))) return false;
    this.#reportUnwanted(frame);
    this.#take();
    this.#noteMatch();
    return true;
  }

  #reportUnwanted(frame: Frame): void {
    const { at, text } = this.#current;
    this.#report(at, `extraneous input ${quoted(text)} expecting ${this.#expected(frame)}`);
  }

  /** Whether the next token may be where a decision is made; if not, recovers. */
  #isSynchronized(frame: Frame, state: DecisionState): boolean {
    const first = firstOf(state);
    if (this.#isRecovering || first.has(nothing) || first.has(this.#typeAt(1))) return true;
    if (state.isRepeated) {
      this.#reportUnwanted(frame);
      const set = new Set([...this.#expectedAt(state, frame), ...this.#recoverySet(frame)]);
      this.#skipUntil(set, Number.POSITIVE_INFINITY);
      return true;
    }
    if (this.#deleteToken(frame)) return true;
    this.#failMismatched(frame);
    return false;
  }

  #decide(frame: Frame, state: DecisionState): void {
    const typeAt = (distance: number) => this.#typeAt(distance);
    const lookahead: Lookahead = { typeAt, precedence: frame.precedence };
    const choice = state.choose(lookahead);
    if ('misfit' in choice) {
      const end = Math.min(this.#at + choice.misfit, this.#tokens.length) - 1;
      this.#fail(frame, itemAt(this.#tokens, end).at, () => this.#noAlternative(end));
      return;
    }
    if (state.wraps === 'always' || (state.wraps === 'first' && choice.way === 0)) {
      const { rule, first } = frame.node;
      frame.node = { rule, way: -1, first, parts: [onlyPart(frame.node) ?? frame.node] };
    }
    if (state.isAlternative) frame.node.way = choice.way;
    this.#state = itemAt(state.ways, choice.way);
  }

  #noAlternative(end: number): string {
    const { at, kind, text } = itemAt(this.#tokens, end);
    const start = this.#current;
    if (start.kind === 'end') return `no viable alternative at input '<EOF>'`;
    const input = this.#textOf(start.at, kind === 'end' ? at : at + text.length);
    const reserved = /^.(true|false|null)$/.exec(input)?.[1];
    return reserved === undefined
      ? `no viable alternative at input ${quoted(input)}`
      : `mismatched input '${reserved}' expecting IDENTIFIER`;
  }

  /** A part of the source without what is no token. */
  #textOf(start: number, end: number): string {
    let from = start;
    let text = '';
    for (const gap of this.#gaps) {
      if (gap.at < from || gap.at >= end) continue;
      text += this.#source.slice(from, gap.at);
      from = gap.at + gap.length;
    }
    return text + this.#source.slice(from, end);
  }

  #failMismatched(frame: Frame): void {
    const { at, text } = this.#current;
    this.#fail(
      frame,
      at,
      () => `mismatched input ${quoted(text)} expecting ${this.#expected(frame)}`,
    );
  }

  /** Skips tokens up to one that may follow any rule that is being read, and ends the rule. */
  #fail(frame: Frame, at: number, message: () => string): void {
    if (!this.#isRecovering) this.#report(at, message());
    this.#countAttempt();
    let skipped = 0;
    if (this.#lastAt === this.#at && this.#lastStates.has(this.#state)) {
      this.#take();
      skipped += 1;
    }
    this.#lastAt = this.#at;
    this.#lastStates.add(this.#state);
    this.#skipUntil(this.#recoverySet(frame), skippedMax - skipped);
    this.#leave(frame);
  }

  #skipUntil(set: TokenSet, max: number): void {
    for (let count = 0; this.#at < this.#tokens.length - 1; count += 1) {
      if (set.has(this.#typeAt(1))) return;
      if (count === max) {
        this.#abandon(`error recovery token lookahead limit exceeded: ${skippedMax}`);
      }
      this.#take();
    }
  }

  #expected(frame: Frame): string {
    return showTypes(this.#expectedAt(this.#state, frame));
  }

  /** The types of tokens that may follow a state, in all the rules around it. */
  #expectedAt(state: State, frame: Frame): TokenSet {
    let first = firstOf(state);
    if (!first.has(nothing)) return first;
    const all = new Set(first);
    let around: Frame | undefined = frame;
    while (first.has(nothing) && around?.next !== undefined) {
      first = firstOf(around.next);
      for (const type of first) all.add(type);
      around = around.parent;
    }
    all.delete(nothing);
    if (first.has(nothing)) all.add(typeNumber('<EOF>'));
    return all;
  }

  #recoverySet(frame: Frame): TokenSet {
    const all = new Set<number>();
    for (
      let around: Frame | undefined = frame;
      around?.next !== undefined;
      around = around.parent
    ) {
      for (const type of firstOf(around.next)) all.add(type);
    }
    all.delete(nothing);
    return all;
  }

  #noteMatch(): void {
    this.#isRecovering = false;
    this.#lastAt = -1;
    this.#lastStates.clear();
  }

  #countAttempt(): void {
    if (this.#attempts === attemptsMax) {
      this.#addError(this.#current.at, `error recovery attempt limit exceeded: ${attemptsMax}`);
      throw new Abandoned();
    }
    this.#attempts += 1;
  }

  #report(at: number, problem: string): void {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    this.#addError(at, problem);
  }

  #addError(at: number, problem: string): void {
    const isLast = this.#errors === errorsMax;
    const shown = isLast ? `More than ${errorsMax} syntax errors` : problem;
    this.#issues.push({ at, message: `Syntax error: ${shown}` });
    if (isLast) throw new Abandoned();
    this.#errors += 1;
  }

  #abandon(message: string): never {
    this.#issues.push({ at: nowhere, message });
    throw new Abandoned();
  }
}

/** The part for which a node stands; undefined for a node of its own. */
function onlyPart({ rule, way, parts }: TreeNode): TreeNode | undefined {
  if (rule === 'primary') {
    return way === 1 || way === 5 ? parts.find((part) => 'rule' in part) : undefined;
  }
  const [part] = parts;
  if (parts.length !== 1 || part === undefined || !('rule' in part)) return undefined;
  if (rule === 'unary') return way === 0 ? part : undefined;
  return passing.has(rule) ? part : undefined;
}

const passing: ReadonlySet<RuleName> = new Set(['expr', 'or', 'and', 'relation', 'calc', 'member']);

/** The type of a token; a quoted name may follow a dot, and name a field of a message. */
function typeBehind(token: Token, before: Token | undefined): number {
  const type = typeOf(token);
  if (type !== quotedName) return type;
  return before !== undefined && '.?{,'.includes(before.text) ? typeNumber('IDENTIFIER') : type;
}

const quotedName = -2;
const unread = -3;

/** A text in quotes, with escaped blanks. */
const quoted = (text: string): string =>
  `'${text.replaceAll('\t', '\\t').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}'`;
