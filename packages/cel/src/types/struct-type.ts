import type { Value } from '../values.ts';
import type { CallContext } from './functions.ts';
import type { Type } from './types.ts';

/** What an object of a name may be made of. */
export interface StructType {
  readonly type: Type;
  /** The type of a field; undefined for one that there is not. */
  field(name: string): Type | undefined;
  /** What the object is seen as; the object itself where absent. Throws `CelError`. */
  make?(fields: ReadonlyMap<string, Value>, context: CallContext): Value;
}
