/** One operand of a command. `shown` is how messages show it, `at` where it stands. */
export type Operand = { readonly at: number; readonly shown: string } & (
  | { readonly type: 'dot' | 'nil' }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'number'; readonly value: number | bigint; readonly isFloat: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'identifier'; readonly name: string }
  | { readonly type: 'field'; readonly names: readonly string[] }
  | { readonly type: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly type: 'chain'; readonly operand: Operand; readonly names: readonly string[] }
  | { readonly type: 'pipe'; readonly pipe: Pipe }
);

/** A function and its arguments, or an operand alone. */
export interface Command {
  readonly at: number;
  readonly shown: string;
  readonly operands: readonly Operand[];
}

/** `$x, $y := a | b` */
export interface Pipe {
  readonly at: number;
  readonly shown: string;
  readonly variables: readonly string[];
  /** Whether the variables are set rather than declared. */
  readonly assigns: boolean;
  readonly commands: readonly Command[];
}

export type Node =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'action'; readonly pipe: Pipe }
  | {
      readonly type: 'if' | 'with' | 'range';
      readonly pipe: Pipe;
      readonly body: readonly Node[];
      readonly otherwise: readonly Node[];
    }
  | {
      readonly type: 'template';
      readonly at: number;
      readonly shown: string;
      readonly name: string;
      readonly pipe: Pipe | undefined;
    }
  | { readonly type: 'break' | 'continue' };

/** A template and those it defines, by name; its own is `output`. */
export interface Templates {
  readonly source: string;
  readonly byName: ReadonlyMap<string, readonly Node[]>;
}

/** What the template given is called in messages. */
export const mainName = 'output';
