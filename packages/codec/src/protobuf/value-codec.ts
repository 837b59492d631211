import type { JsonValue } from '@wheelhouse/machinery';
import type { WireReader, WireWriter } from './wire.ts';

/** Writes and reads values of one schema; made once per schema. */
export interface ValueCodec {
  readonly wireType: number;
  /** Writes the value without its key; `undefined` is the type's zero value. */
  write(writer: WireWriter, value: JsonValue | undefined): void;
  read(reader: WireReader, depth: number): JsonValue;
}
