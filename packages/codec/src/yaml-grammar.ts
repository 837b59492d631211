import { TooManyValues } from './decode-limits.ts';
import { type Edit, faultAt } from './yaml-cursor.ts';
import { type Token, type TokenType, YamlScanner } from './yaml-scanner.ts';

/** What the parser expects next. */
type State =
  | 'document'
  | 'directives'
  | 'content'
  | 'document end'
  | 'block node'
  | 'block node or items'
  | 'flow node'
  | 'items'
  | 'item'
  | 'items of a key'
  | 'item of a key'
  | 'key'
  | 'node of a key'
  | 'colon'
  | 'value'
  | 'end of a list'
  | 'list'
  | 'key in a list'
  | 'colon in a list'
  | 'value in a list'
  | 'end of a map'
  | 'map'
  | 'key in a map'
  | 'colon in a map'
  | 'value in a map'
  | 'single key in a map';

/** What a token leads to. */
interface Step {
  /** Whether the token is taken. */
  readonly takes?: boolean;
  /** The next state; absent: that behind the node that ends here. */
  readonly to?: State;
  /** The state behind the node that begins here. */
  readonly then?: State;
  readonly problem?: string;
}

type Rule = Readonly<Partial<Record<TokenType, Step>>> & { readonly others: Step };

const take = (to: State): Step => ({ takes: true, to });
const stay = (to: State): Step => ({ to });
const node = (to: State, then: State): Step => ({ to, then });
const problem = (text: string): Step => ({ problem: text });
const end: Step = { takes: true };
const absent: Step = {};

const rules: Readonly<Partial<Record<State, Rule>>> = {
  content: {
    version: absent,
    'tag-directive': absent,
    'document-start': absent,
    'document-end': absent,
    'stream-end': absent,
    others: stay('block node'),
  },
  items: {
    '-': take('item'),
    'block-end': end,
    others: problem("did not find expected '-' indicator"),
  },
  item: { '-': stay('items'), 'block-end': stay('items'), others: node('block node', 'items') },
  'items of a key': { '-': take('item of a key'), others: absent },
  'item of a key': {
    '-': stay('items of a key'),
    '?': stay('items of a key'),
    ':': stay('items of a key'),
    'block-end': stay('items of a key'),
    others: node('block node', 'items of a key'),
  },
  key: {
    '?': take('node of a key'),
    'block-end': end,
    others: problem('did not find expected key'),
  },
  'node of a key': {
    '?': stay('colon'),
    ':': stay('colon'),
    'block-end': stay('colon'),
    others: node('block node or items', 'colon'),
  },
  colon: { ':': take('value'), others: stay('key') },
  value: {
    '?': stay('key'),
    ':': stay('key'),
    'block-end': stay('key'),
    others: node('block node or items', 'key'),
  },
  list: { ']': end, '?': take('key in a list'), others: node('flow node', 'end of a list') },
  'end of a list': {
    ']': end,
    ',': take('list'),
    others: problem("did not find expected ',' or ']'"),
  },
  'key in a list': {
    // As in kube-apiserver's decoder, a colon behind an empty key is none.
    ':': take('colon in a list'),
    ',': take('colon in a list'),
    ']': take('colon in a list'),
    others: node('flow node', 'colon in a list'),
  },
  'colon in a list': { ':': take('value in a list'), others: stay('end of a list') },
  'value in a list': {
    ',': stay('end of a list'),
    ']': stay('end of a list'),
    others: node('flow node', 'end of a list'),
  },
  map: { '}': end, '?': take('key in a map'), others: node('flow node', 'single key in a map') },
  'end of a map': {
    '}': end,
    ',': take('map'),
    others: problem("did not find expected ',' or '}'"),
  },
  'key in a map': {
    ':': stay('colon in a map'),
    ',': stay('colon in a map'),
    '}': stay('colon in a map'),
    others: node('flow node', 'colon in a map'),
  },
  'colon in a map': { ':': take('value in a map'), others: stay('end of a map') },
  'value in a map': {
    ',': stay('end of a map'),
    '}': stay('end of a map'),
    others: node('flow node', 'end of a map'),
  },
  'single key in a map': { others: stay('end of a map') },
};

/** What begins a node, by its first token behind its anchor and tag. */
const flowNode: Rule = {
  scalar: end,
  '[': take('list'),
  '{': take('map'),
  others: problem('did not find expected node content'),
};
const blockNode: Rule = {
  ...flowNode,
  'block-sequence': take('items'),
  'block-mapping': take('key'),
};
const blockNodeOrItems: Rule = { ...blockNode, '-': stay('items of a key') };
const nodes: Readonly<Partial<Record<State, Rule>>> = {
  'flow node': flowNode,
  'block node': blockNode,
  'block node or items': blockNodeOrItems,
};

/** Number of tokens that one step reads, unless it pauses in a long text. */
const tokensPerStep = 1000;

/** Upper bound of the tokens per value. */
const tokensPerValue = 6;

/** Tokens that each begin a value. */
const valueTypes: ReadonlySet<TokenType> = new Set(['scalar', 'alias', '[', '{']);

/** The first document of a text. */
interface CheckedDocument {
  /** Where it ends. */
  readonly end: number;
  /** See `YamlCursor.edits`. They may be behind its end. */
  readonly edits: readonly Edit[];
}

/**
 * Checks in steps the first document of a text as kube-apiserver's decoder does, which does not
 * read further.
 * @param valuesMax maximum number of values, including keys
 * @throws YamlError or TooManyValues
 */
export function* checkDocument(
  text: string,
  valuesMax = Number.POSITIVE_INFINITY,
): Generator<void, CheckedDocument> {
  const check = new DocumentCheck(text, valuesMax);
  for (let steps = 1; ; steps += 1) {
    const state = check.step();
    if (state === 'done') return check;
    if (state === 'paused' || steps % tokensPerStep === 0) yield;
  }
}

class DocumentCheck implements CheckedDocument {
  readonly #scanner: YamlScanner;
  #state: State = 'document';
  readonly #states: State[] = [];
  /** The anchor and the tag of the node that begins. */
  #anchor: Token | undefined;
  #tag: Token | undefined;
  readonly #anchors = new Set<string>();
  readonly #handles = new Set<string>();
  readonly #valuesMax: number;
  #hasVersion = false;
  #values = 0;
  #tokens = 0;
  /** Where the scalar ends that is the last token so far, if it is literal or folded. */
  #blockEnd: number | undefined;
  end = 0;

  constructor(text: string, valuesMax: number) {
    this.#scanner = new YamlScanner(text);
    this.#valuesMax = valuesMax;
  }

  step(): 'more' | 'paused' | 'done' {
    const token = this.#scanner.peek();
    if (token === 'paused') return token;
    if (this.#state === 'document end') {
      // What follows at the first column is no part of a literal or folded scalar.
      this.end = this.#blockEnd ?? token.at;
      return 'done';
    }
    const rule = rules[this.#state];
    if (rule !== undefined) this.#follow(rule[token.type] ?? rule.others, token);
    else if (this.#state === 'document' || this.#state === 'directives') {
      this.#follow(this.#directive(token), token);
    } else this.#node(token);
    return 'more';
  }

  #follow({ takes, to, then, problem }: Step, token: Token): void {
    if (problem !== undefined) throw faultAt(token.line, problem);
    if (takes === true) this.#take(token);
    if (then !== undefined) this.#states.push(then);
    this.#state = to ?? this.#states.pop() ?? 'document end';
  }

  get edits(): readonly Edit[] {
    return this.#scanner.edits;
  }

  #take({ type, end }: Token): void {
    this.#scanner.skip();
    if (type !== 'block-end') this.#blockEnd = end;
    this.#tokens += 1;
    if (valueTypes.has(type)) this.#values += 1;
    if (this.#values > this.#valuesMax || this.#tokens > this.#valuesMax * tokensPerValue) {
      throw new TooManyValues(this.#valuesMax);
    }
  }

  #directive({ type, text }: Token): Step {
    if (type === 'version') {
      if (this.#hasVersion) return problem('found duplicate %YAML directive');
      this.#hasVersion = true;
      return text === '1.1' ? take('directives') : problem('found incompatible YAML document');
    }
    if (type === 'tag-directive') {
      if (this.#handles.has(text)) return problem('found duplicate %TAG directive');
      this.#handles.add(text);
      return take('directives');
    }
    if (type === 'document-start') return take('content');
    if (this.#state === 'directives') return problem('did not find expected <document start>');
    return type === 'stream-end' ? absent : stay('block node');
  }

  #node(token: Token): void {
    const { type, text } = token;
    const isBare = this.#anchor === undefined && this.#tag === undefined;
    if (type === 'alias' && isBare) {
      if (!this.#anchors.has(text)) throw faultAt(0, `unknown anchor '${text}' referenced`);
      this.#follow(end, token);
    } else if (type === 'anchor' && this.#anchor === undefined) {
      this.#anchor = token;
      this.#take(token);
    } else if (type === 'tag' && this.#tag === undefined) {
      this.#tag = token;
      this.#take(token);
    } else {
      this.#checkHandle();
      if (this.#anchor !== undefined) this.#anchors.add(this.#anchor.text);
      this.#anchor = undefined;
      this.#tag = undefined;
      const rule = nodes[this.#state] ?? flowNode;
      this.#follow(rule[type] ?? (isBare ? rule.others : absent), token);
    }
  }

  #checkHandle(): void {
    const { text = '', line = 0 } = this.#tag ?? {};
    if (text === '' || text === '!!' || this.#handles.has(text)) return;
    throw faultAt(line, 'found undefined tag handle');
  }
}
