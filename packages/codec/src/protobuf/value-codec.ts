import type { JsonValue, Stride } from '@wheelhouse/machinery';
import type { WireReader, WireWriter } from './wire.ts';

/** Where a reader that pauses is. */
export interface SteppedRead {
  readonly depth: number;
  readonly stride: Stride;
}

/** Writes and reads values of one schema; made once per schema. */
export interface ValueCodec {
  readonly wireType: number;
  /** Writes the value without its key; `undefined` is the type's zero value. */
  write(writer: WireWriter, value: JsonValue | undefined): void;
  read(reader: WireReader, depth: number): JsonValue;
  /** `write` in steps, where a value may hold many others; absent for those that hold none. */
  writeSteps?(
    writer: WireWriter,
    value: JsonValue | undefined,
    stride: Stride,
  ): Generator<void, void>;
  /** `read` in steps, likewise. */
  readSteps?(reader: WireReader, at: SteppedRead): Generator<void, JsonValue>;
}
