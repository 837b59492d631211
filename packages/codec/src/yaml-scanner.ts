import { tooDeep } from './decode-limits.ts';
import { type Edit, hash, isBlank, YamlCursor } from './yaml-cursor.ts';

/** `?` also stands before a key that has no question mark. */
export type TokenType =
  | 'stream-end'
  | 'version'
  | 'tag-directive'
  | 'document-start'
  | 'document-end'
  | 'block-sequence'
  | 'block-mapping'
  | 'block-end'
  | '['
  | ']'
  | '{'
  | '}'
  | ','
  | '-'
  | '?'
  | ':'
  | 'alias'
  | 'anchor'
  | 'tag'
  | 'scalar';

/** A token of a YAML stream. Tokens of block collections have no text in the source. */
export interface Token {
  readonly type: TokenType;
  readonly at: number;
  /** The line, from zero. */
  readonly line: number;
  /** The version, the handle, or the name of the anchor. */
  readonly text: string;
  /** Where a literal or folded scalar ends. */
  readonly end?: number;
}

/** A position, and the number of the token there if it was read. */
interface Place {
  readonly at: number;
  readonly line: number;
  readonly column: number;
  readonly token?: number;
}

/** A scalar that is read in steps. */
interface OpenScalar {
  readonly place: Place;
  readonly read: () => 'paused' | 'ended';
}

/** A node that may turn out to be a key. */
interface SimpleKey extends Required<Place> {
  isPossible: boolean;
  /** Whether nothing but a key can be there. */
  readonly isRequired: boolean;
}

/** Maximum number of characters between the start of a key and its colon. */
const keyCharactersMax = 1024;

/** Number of taken tokens that are kept until they are removed together. */
const takenTokensMax = 1000;

/** Maximum depth of collections. */
const depthMax = 10_000;

const noColon = "could not find expected ':'";

/** Characters that start nothing, or only outside of flow collections. */
const unusable = new Set('|>%@`\t');

/** No node of a level is a key. */
const noKey: SimpleKey = {
  isPossible: false,
  isRequired: false,
  token: -1,
  at: 0,
  line: 0,
  column: 0,
};

/**
 * Splits a YAML text into tokens, each of which is read when it is needed, and refuses what
 * kube-apiserver's decoder refuses there. Collections by indentation have tokens of their own.
 */
export class YamlScanner {
  readonly #text: string;
  readonly #cursor: YamlCursor;
  /** The column of the innermost collection by indentation. */
  #indent = -1;
  readonly #indents: number[] = [];
  #isKeyAllowed = true;
  /** One for each level of flow collections. */
  readonly #keys: SimpleKey[] = [noKey];
  readonly #keyByToken = new Map<number, SimpleKey>();
  readonly #tokens: Token[] = [];
  #head = 0;
  /** Number of tokens that were taken. */
  #taken = 0;
  #open: OpenScalar | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#cursor = new YamlCursor(text);
  }

  /** Returns the next token, or, in a long text, `paused`. Throws YamlError. */
  peek(): Token | 'paused' {
    if (this.#open !== undefined) {
      this.#cursor.resume();
      this.#continue(this.#open);
    }
    while (this.#open === undefined) {
      const token = this.#tokens[this.#head];
      if (token !== undefined) {
        // What follows may show that a key begins here.
        const key = this.#keyByToken.get(this.#taken);
        if (key === undefined || !this.#isValid(key)) return token;
      }
      this.#fetch();
    }
    return 'paused';
  }

  /** Moves behind the next token. */
  skip(): void {
    this.#taken += 1;
    this.#head += 1;
    if (this.#head < this.#tokens.length && this.#head < takenTokensMax) return;
    this.#tokens.splice(0, this.#head);
    this.#head = 0;
  }

  /** See `YamlCursor.edits`. */
  get edits(): readonly Edit[] {
    return this.#cursor.edits;
  }

  /** The number of the token that is added next. */
  get #nextNumber(): number {
    return this.#taken + this.#tokens.length - this.#head;
  }

  get #isFlow(): boolean {
    return this.#keys.length > 1;
  }

  #add(type: TokenType, { at, line } = this.#here(), text = ''): void {
    this.#tokens.push({ type, at, line, text });
  }

  /** Adds a token of one character. */
  #addIndicator(type: TokenType): void {
    this.#add(type);
    this.#cursor.at += 1;
  }

  #fetch(): void {
    this.#skipToToken();
    this.#unroll(this.#cursor.column);
    const character = this.#text[this.#cursor.at];
    if (character === undefined) this.#endStream();
    else if (character === '%' && this.#cursor.column === 0) this.#readDirective();
    else if (this.#cursor.isAtMarker()) this.#readDocumentMarker(character);
    else if (!this.#readIndicator(character)) this.#readPlain();
  }

  /** Reads what a character begins unless it begins a plain scalar; returns whether it does not. */
  #readIndicator(character: string): boolean {
    const isHalf = this.#isFlow || isBlank(this.#cursor.codeAt(1));
    if (character === '[' || character === '{') this.#openFlow(character);
    else if (character === ']' || character === '}') this.#closeFlow(character);
    else if (character === ',') this.#readComma();
    else if (character === '-' && isBlank(this.#cursor.codeAt(1))) this.#readItem();
    else if (character === '?' && isHalf) this.#readKey();
    else if (character === ':' && isHalf) this.#readValue();
    else if (character === '*') this.#readNode('alias', () => this.#cursor.readName());
    else if (character === '&') this.#readNode('anchor', () => this.#cursor.readName());
    else if (character === '!') this.#readNode('tag', () => this.#cursor.readTag());
    else if ((character === '|' || character === '>') && !this.#isFlow) this.#readBlock();
    else if (character === "'" || character === '"') {
      this.#readQuoted();
    } else if (unusable.has(character)) {
      throw this.#cursor.fault('found character that cannot start any token');
    } else return false;
    return true;
  }

  #readComma(): void {
    this.#removeKey();
    this.#isKeyAllowed = true;
    this.#addIndicator(',');
  }

  /** Skips blanks and comments. Tabs are blanks where no key may begin. */
  #skipToToken(): void {
    for (;;) {
      this.#cursor.eatMark();
      this.#cursor.eatBlanks({ tabs: this.#isFlow || !this.#isKeyAllowed });
      if (this.#cursor.codeAt() === hash) this.#cursor.eatToLineEnd();
      if (!this.#cursor.eatLineEnd()) return;
      if (!this.#isFlow) this.#isKeyAllowed = true;
    }
  }

  /** Ends the collections by indentation that are right of a column. */
  #unroll(column: number): void {
    if (this.#isFlow) return;
    while (this.#indent > column) {
      this.#add('block-end');
      this.#indent = this.#indents.pop() ?? -1;
    }
  }

  /** Begins a collection at a column, unless the innermost one has that column. */
  #roll(type: TokenType, place: Place): void {
    if (this.#isFlow || this.#indent >= place.column) return;
    this.#indents.push(this.#indent);
    if (this.#indents.length > depthMax) throw tooDeep();
    this.#indent = place.column;
    this.#insert(type, place);
  }

  /** Inserts a token before another one, which may have been taken, or at the end. */
  #insert(type: TokenType, place: Place): void {
    const index = (place.token ?? -1) - this.#taken;
    if (index < 0) this.#add(type);
    else this.#tokens.splice(this.#head + index, 0, { type, ...place, text: '' });
  }

  #here(): Place {
    return { at: this.#cursor.at, line: this.#cursor.line, column: this.#cursor.column };
  }

  /** Whether a colon here would make a node a key: in the same line and not far from its start. */
  #isValid(key: SimpleKey): boolean {
    if (!key.isPossible) return false;
    if (key.line === this.#cursor.line && key.at + keyCharactersMax >= this.#cursor.at) return true;
    if (key.isRequired) throw this.#cursor.fault(noColon);
    key.isPossible = false;
    this.#keyByToken.delete(key.token);
    return false;
  }

  /** Notes that a node begins here, which may be a key. */
  #saveKey(): void {
    if (!this.#isKeyAllowed) return;
    this.#removeKey();
    const key = {
      isPossible: true,
      isRequired: !this.#isFlow && this.#indent === this.#cursor.column,
      token: this.#nextNumber,
      ...this.#here(),
    };
    this.#keys[this.#keys.length - 1] = key;
    this.#keyByToken.set(key.token, key);
  }

  #removeKey(): void {
    const key = this.#keys.at(-1) ?? noKey;
    if (!key.isPossible) return;
    if (key.isRequired) throw this.#cursor.fault(noColon);
    key.isPossible = false;
    this.#keyByToken.delete(key.token);
  }

  /** Reads a node that may be a key, and which no other one may follow. */
  #readNode(type: 'alias' | 'anchor' | 'tag', read: () => string): void {
    const place = this.#beginNode();
    this.#add(type, place, read());
  }

  #beginNode(): Place {
    this.#saveKey();
    this.#isKeyAllowed = false;
    return this.#here();
  }

  #readQuoted(): void {
    const place = this.#beginNode();
    const quote = this.#cursor.codeAt();
    this.#cursor.at += 1;
    this.#continue({ place, read: () => this.#cursor.readQuoted(quote) });
  }

  #readPlain(): void {
    const place = this.#beginNode();
    const start = { isNewLine: false, isPaused: false };
    const scalar = { indent: this.#indent + 1, isFlow: this.#isFlow, ...start };
    const read = () => {
      const state = this.#cursor.readPlain(scalar);
      if (state === 'ended' && scalar.isNewLine) this.#isKeyAllowed = true;
      return state;
    };
    this.#continue({ place, read });
  }

  /** Reads the next step of a scalar. */
  #continue(scalar: OpenScalar): void {
    this.#open = scalar;
    if (scalar.read() === 'paused') return;
    this.#open = undefined;
    this.#add('scalar', scalar.place);
  }

  #readBlock(): void {
    this.#removeKey();
    this.#isKeyAllowed = true;
    const place = this.#here();
    this.#cursor.readBlock(this.#indent);
    this.#tokens.push({ type: 'scalar', ...place, text: '', end: this.#cursor.at });
  }

  #readDirective(): void {
    this.#endCollections();
    const place = this.#here();
    const { type, text } = this.#cursor.readDirective();
    this.#add(type, place, text);
  }

  #endStream(): void {
    this.#cursor.endLine();
    this.#endCollections();
    this.#add('stream-end');
  }

  #endCollections(): void {
    this.#unroll(-1);
    this.#removeKey();
    this.#isKeyAllowed = false;
  }

  #readDocumentMarker(character: string): void {
    this.#endCollections();
    this.#add(character === '-' ? 'document-start' : 'document-end');
    this.#cursor.at += 3;
  }

  #openFlow(type: '[' | '{'): void {
    this.#saveKey();
    // As in kube-apiserver's decoder, an empty collection is no key.
    this.#keys.push({ ...noKey, token: this.#nextNumber });
    if (this.#keys.length > depthMax) throw tooDeep();
    this.#isKeyAllowed = true;
    this.#addIndicator(type);
  }

  #closeFlow(type: ']' | '}'): void {
    this.#removeKey();
    if (this.#isFlow) this.#keyByToken.delete(this.#keys.pop()?.token ?? -1);
    this.#isKeyAllowed = false;
    this.#addIndicator(type);
  }

  #readItem(): void {
    if (!this.#isFlow) {
      if (!this.#isKeyAllowed) {
        throw this.#cursor.fault('block sequence entries are not allowed in this context');
      }
      this.#roll('block-sequence', this.#here());
    }
    this.#removeKey();
    this.#isKeyAllowed = true;
    this.#addIndicator('-');
  }

  #readKey(): void {
    if (!this.#isFlow) {
      if (!this.#isKeyAllowed)
        throw this.#cursor.fault('mapping keys are not allowed in this context');
      this.#roll('block-mapping', this.#here());
    }
    this.#removeKey();
    this.#isKeyAllowed = !this.#isFlow;
    this.#addIndicator('?');
  }

  #readValue(): void {
    const key = this.#keys.at(-1) ?? noKey;
    if (this.#isValid(key)) {
      this.#insert('?', key);
      this.#roll('block-mapping', key);
      key.isPossible = false;
      this.#keyByToken.delete(key.token);
      this.#isKeyAllowed = false;
    } else {
      if (!this.#isFlow) {
        if (!this.#isKeyAllowed) {
          throw this.#cursor.fault('mapping values are not allowed in this context');
        }
        this.#roll('block-mapping', this.#here());
      }
      this.#isKeyAllowed = !this.#isFlow;
    }
    this.#addIndicator(':');
  }
}
