import type { Token } from './lexer.ts';

/**
 * The grammar of CEL as a graph of states, which the recovery from syntax errors follows. Its rules
 * and decisions are those of cel-go's grammar, because both determine which errors are reported.
 */

/** The types of tokens in the order in which messages list them. */
const types = (
  '<EOF> == != in < <= >= > && || [ ] { } ( ) . , - ! ? : + * / % true false null ' +
  'NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER'
).split(' ');
const numbers = new Map(types.map((type, number) => [type, number]));

/** Stands for no token in a set: the end of the rule may follow. */
export const nothing = -1;

/** Types of tokens by their numbers. */
export type TokenSet = ReadonlySet<number>;

/** The number of a type of tokens. */
export const typeNumber = (type: string): number => numbers.get(type) ?? nothing;

/** Number of a token's type; -2 for a quoted name, which only some places allow. */
export function typeOf({ kind, text, value }: Token): number {
  if (kind !== 'literal') {
    const number = numbers.get(kind === 'end' ? '<EOF>' : text);
    if (number !== undefined) return number;
    return text.startsWith('`') ? -2 : typeNumber('IDENTIFIER');
  }
  if (typeof value === 'bigint') return typeNumber('NUM_INT');
  if (typeof value === 'number') return typeNumber('NUM_FLOAT');
  if (typeof value === 'string') return typeNumber('STRING');
  return typeNumber(value instanceof Uint8Array ? 'BYTES' : 'NUM_UINT');
}

/** The types of a set as messages list them. */
export function showTypes(set: TokenSet): string {
  const shown = [...set]
    .sort((left, right) => left - right)
    .map((number) => types[number] ?? '')
    .map((type) => (/^(?:<EOF>|[A-Z]+(?:_[A-Z]+)?)$/.test(type) ? type : `'${type}'`));
  return shown.length === 1 ? (shown[0] ?? '') : `{${shown.join(', ')}}`;
}

/** A rule of the grammar. */
export type RuleName =
  | 'start'
  | 'expr'
  | 'or'
  | 'and'
  | 'relation'
  | 'calc'
  | 'unary'
  | 'member'
  | 'primary'
  | 'arguments'
  | 'items'
  | 'fields'
  | 'field'
  | 'entries'
  | 'item'
  | 'literal';

/** What a parser sees where it decides: the types of the next tokens, from 1. */
export interface Lookahead {
  typeAt(distance: number): number;
  /** The least precedence of the operators that the rule may read. */
  readonly precedence: number;
}

/** The number of a way, or of the token that fits none. */
type Choice = { readonly way: number } | { readonly misfit: number };

interface TokenState {
  readonly kind: 'token';
  readonly set: TokenSet;
  readonly next: State;
}
interface RuleState {
  readonly kind: 'rule';
  readonly rule: RuleName;
  readonly precedence: number;
  readonly next: State;
}
/** Where one of several states follows. */
export interface DecisionState {
  readonly kind: 'decision';
  /** Whether a pass through a loop precedes, instead of the block with the alternatives. */
  readonly isRepeated: boolean;
  /** The states of the alternatives, the last one behind an optional part. */
  readonly ways: readonly State[];
  readonly choose: (lookahead: Lookahead) => Choice;
  /** Whether the part before becomes the first operand of a new node; only for the first way. */
  readonly wraps: 'always' | 'first' | 'never';
  /** Whether the number of the way is that of the node's alternative. */
  readonly isAlternative: boolean;
}
interface EndState {
  readonly kind: 'end';
}
/** What a rule expects next. */
export type State = TokenState | RuleState | DecisionState | EndState;

/** A part of a rule: creates its first state before the given one. */
type Part = (next: State) => State;

const setOf = (texts: string): TokenSet => new Set(texts.split(' ').map(typeNumber));

const token =
  (texts: string): Part =>
  (next) => ({ kind: 'token', set: setOf(texts), next });

const rule =
  (name: RuleName, precedence = 0): Part =>
  (next) => ({ kind: 'rule', rule: name, precedence, next });

const sequence =
  (...parts: readonly Part[]): Part =>
  (next) =>
    parts.reduceRight((following, part) => part(following), next);

type Choose = DecisionState['choose'];

/** The first way that the next token fits; else the last one. */
const byToken =
  (ways: readonly State[]): Choose =>
  (lookahead) => {
    const type = lookahead.typeAt(1);
    const way = ways.findIndex((state) => firstOf(state).has(type));
    return { way: way < 0 ? ways.length - 1 : way };
  };

const plain = { isRepeated: false, wraps: 'never', isAlternative: false } as const;

const optional =
  (part: Part): Part =>
  (next) => {
    const ways = [part(next), next];
    return { kind: 'decision', ...plain, ways, choose: byToken(ways) };
  };

const alternatives =
  (
    choose: Choose,
    options: Partial<Pick<DecisionState, 'wraps' | 'isAlternative'>>,
    ...parts: readonly Part[]
  ): Part =>
  (next) => ({
    kind: 'decision',
    ...plain,
    ...options,
    ways: parts.map((part) => part(next)),
    choose,
  });

interface LoopOptions {
  readonly choose?: Choose;
  readonly wraps?: DecisionState['wraps'];
}

/** Repeats a part. `least` is the number of times that it must occur. */
function repeated(least: 0 | 1, part: Part, { choose, wraps = 'never' }: LoopOptions = {}) {
  return (next: State): State => {
    const ways: State[] = [];
    const decide: Choose = choose ?? ((lookahead) => byToken(ways)(lookahead));
    const loop = { kind: 'decision', ...plain, wraps, ways, choose: decide } as const;
    const body = part({ ...loop, isRepeated: true });
    ways.push(body, next);
    return least === 0 ? loop : { ...loop, ways: [body], choose: () => ({ way: 0 }) };
  };
}

const separated = (part: Part, more: Part = part): Part =>
  sequence(part, repeated(0, sequence(token(','), more)));

/** A list whose last item a comma may follow: another item must begin behind a comma. */
const trailed = (part: Part, first: RuleName): Part => {
  const choose: Choose = (lookahead) => {
    const isMore =
      lookahead.typeAt(1) === typeNumber(',') && firstOfRule(first).has(lookahead.typeAt(2));
    return { way: isMore ? 0 : 1 };
  };
  return sequence(part, repeated(0, sequence(token(','), part), { choose }));
};

const [minus, dot, brace] = [typeNumber('-'), typeNumber('.'), typeNumber('{')];
const numeric = setOf('NUM_INT NUM_FLOAT');
const identifier = typeNumber('IDENTIFIER');

/** A minus belongs to a number behind it, or is an operator. */
const chooseUnary: Choose = (lookahead) => {
  const type = lookahead.typeAt(1);
  if (type === typeNumber('!')) return { way: 1 };
  if (type !== minus) return firstOfRule('member').has(type) ? { way: 0 } : { misfit: 1 };
  const after = lookahead.typeAt(2);
  if (numeric.has(after)) return { way: 0 };
  return firstOfRule('member').has(after) ? { way: 2 } : { misfit: 2 };
};

const chooseMinus: Choose = (lookahead) => {
  const type = lookahead.typeAt(1);
  if (type !== minus) return firstOfRule('member').has(type) ? { way: 1 } : { misfit: 1 };
  return firstOfRule('member').has(lookahead.typeAt(2)) ? { way: 0 } : { misfit: 2 };
};

const chooseMember: Choose = (lookahead) => {
  if (lookahead.typeAt(1) === typeNumber('[')) return { way: 2 };
  if (lookahead.typeAt(1) !== dot) return { misfit: 1 };
  const after = lookahead.typeAt(2);
  if (after === typeNumber('?')) return { way: 0 };
  if (after !== identifier) return { misfit: 2 };
  return { way: lookahead.typeAt(3) === typeNumber('(') ? 1 : 0 };
};

/** A name may begin a message, whose brace follows any number of names. */
const choosePrimary: Choose = (lookahead) => {
  const type = lookahead.typeAt(1);
  const start = type === dot ? 2 : 1;
  if (start === 2 && lookahead.typeAt(2) !== identifier) return { misfit: 2 };
  if (lookahead.typeAt(start) === identifier) {
    let end = start + 1;
    while (lookahead.typeAt(end) === dot && lookahead.typeAt(end + 1) === identifier) end += 2;
    return { way: lookahead.typeAt(end) === brace ? 4 : 0 };
  }
  const way = ['(', '[', '{'].findIndex((text) => typeNumber(text) === type);
  if (way >= 0) return { way: way + 1 };
  return firstOfRule('literal').has(type) ? { way: 5 } : { misfit: 1 };
};

const chooseLiteral: Choose = (lookahead) => {
  const type = lookahead.typeAt(1);
  const isSigned = type === minus;
  if (isSigned && !numeric.has(lookahead.typeAt(2))) return { misfit: 2 };
  return isSigned || firstOfRule('literal').has(type) ? { way: 0 } : { misfit: 1 };
};

/** Goes through a loop if an operator of a sufficient precedence follows. */
function chooseOperator(...levels: readonly (readonly [string, number])[]): Choose {
  const precedences = new Map(
    levels.flatMap(([texts, level]) => [...setOf(texts)].map((type) => [type, level])),
  );
  return (lookahead) => {
    const precedence = precedences.get(lookahead.typeAt(1)) ?? -1;
    return { way: precedence >= lookahead.precedence ? 0 : 1 };
  };
}

const relations = '== != in < <= >= >';
const products = '* / %';
const sums = '+ -';
const isProduct = setOf(products);
const bracketed = (open: string, inner: Part, close: string): Part =>
  sequence(token(open), optional(inner), optional(token(',')), token(close));
const called: Part = sequence(token('('), optional(rule('arguments')), token(')'));
const names: Part = sequence(optional(token('.')), token('IDENTIFIER'));
const pair: Part = sequence(rule('item'), token(':'), rule('expr'));
const field: Part = sequence(rule('field'), token(':'), rule('expr'));

const parts: Readonly<Record<RuleName, Part>> = {
  start: sequence(rule('expr'), token('<EOF>')),
  expr: sequence(rule('or'), optional(sequence(token('?'), rule('or'), token(':'), rule('expr')))),
  or: sequence(rule('and'), repeated(0, sequence(token('||'), rule('and')))),
  and: sequence(rule('relation'), repeated(0, sequence(token('&&'), rule('relation')))),
  relation: sequence(
    rule('calc'),
    repeated(0, sequence(token(relations), rule('relation', 2)), {
      choose: chooseOperator([relations, 1]),
      wraps: 'first',
    }),
  ),
  calc: sequence(
    rule('unary'),
    repeated(
      0,
      alternatives(
        (lookahead) => ({ way: isProduct.has(lookahead.typeAt(1)) ? 0 : 1 }),
        { wraps: 'always' },
        sequence(token(products), rule('calc', 3)),
        sequence(token(sums), rule('calc', 2)),
      ),
      { choose: chooseOperator([products, 2], [sums, 1]) },
    ),
  ),
  unary: alternatives(
    chooseUnary,
    { isAlternative: true },
    rule('member'),
    sequence(repeated(1, token('!')), rule('member')),
    sequence(repeated(1, token('-'), { choose: chooseMinus }), rule('member')),
  ),
  member: sequence(
    rule('primary'),
    repeated(
      0,
      alternatives(
        chooseMember,
        { wraps: 'always', isAlternative: true },
        sequence(token('.'), optional(token('?')), token('IDENTIFIER')),
        sequence(token('.'), token('IDENTIFIER'), called),
        sequence(token('['), optional(token('?')), rule('expr'), token(']')),
      ),
    ),
  ),
  primary: alternatives(
    choosePrimary,
    { isAlternative: true },
    sequence(names, optional(called)),
    sequence(token('('), rule('expr'), token(')')),
    bracketed('[', rule('items'), ']'),
    bracketed('{', rule('entries'), '}'),
    sequence(
      names,
      repeated(0, sequence(token('.'), token('IDENTIFIER'))),
      bracketed('{', rule('fields'), '}'),
    ),
    rule('literal'),
  ),
  arguments: separated(rule('expr')),
  items: trailed(rule('item'), 'item'),
  fields: trailed(field, 'field'),
  entries: trailed(pair, 'item'),
  field: sequence(optional(token('?')), token('IDENTIFIER')),
  item: sequence(optional(token('?')), rule('expr')),
  literal: alternatives(
    chooseLiteral,
    {},
    sequence(
      optional(token('-')),
      token('NUM_FLOAT NUM_INT NUM_UINT STRING BYTES true false null'),
    ),
  ),
};

const starts = new Map<RuleName, State>();

/** The first state of a rule. */
export function startOf(name: RuleName): State {
  let state = starts.get(name);
  if (state === undefined) {
    state = parts[name]({ kind: 'end' });
    starts.set(name, state);
  }
  return state;
}

const firstSets = new WeakMap<State, TokenSet>();

/** The types of tokens that may follow a state within its rule; `nothing` if the rule may end. */
export function firstOf(state: State): TokenSet {
  if (state.kind === 'token') return state.set;
  if (state.kind === 'rule') return firstOfRule(state.rule);
  if (state.kind === 'end') return noToken;
  let set = firstSets.get(state);
  if (set === undefined) {
    set = new Set(state.ways.flatMap((way) => [...firstOf(way)]));
    firstSets.set(state, set);
  }
  return set;
}

const noToken: TokenSet = new Set([nothing]);
const firstOfRule = (name: RuleName): TokenSet => firstOf(startOf(name));
