import type { JsonObject, JsonValue } from '@wheelhouse/machinery';

/** One request as it is sent. */
export interface StepRequest {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly accept?: string;
  readonly body?: Buffer;
  /** Sent as this user, who has only the permissions granted here. */
  readonly user?: string;
  /** The body contains `versionPlace` instead of the version of the created object. */
  readonly isVersioned?: true;
}

/** As long as a resourceVersion can be, so that one fits in its place. */
export const versionPlace = '"0000000000"';

/** A request whose steps are measured, with its preparations and its cleanup. */
export interface StepCase {
  readonly name: string;
  /** The server is restarted for each measurement. */
  readonly isCold?: true;
  /**
   * Milliseconds before the request in which the preparations settle, and after the answer that the
   * measurement includes, because controllers react then; by default none, and 50.
   */
  readonly settleMs?: number;
  /**
   * @param id a unique value
   * @param scale fraction of the largest body; smaller if decoders count more values
   */
  make(
    id: string,
    scale: number,
  ): {
    readonly before?: readonly StepRequest[];
    readonly request: StepRequest;
    readonly after?: readonly StepRequest[];
  };
}

export const json = 'application/json';
export const namespace = '/api/v1/namespaces/default';
export const maps = `${namespace}/configmaps`;
export const pods = `${namespace}/pods`;

export const repeated = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index));

export const bodyOf = (value: JsonValue) => Buffer.from(JSON.stringify(value));

export const post = (path: string, object: JsonObject): StepRequest => ({
  method: 'POST',
  path,
  type: json,
  body: Buffer.from(JSON.stringify(object)),
});
export const remove = (path: string): StepRequest => ({
  method: 'DELETE',
  path: `${path}?gracePeriodSeconds=0`,
});

/** The object with a place for its version. */
export const withVersion = (object: JsonObject): JsonObject => ({
  ...object,
  metadata: { ...(object['metadata'] as JsonObject), resourceVersion: versionPlace.slice(1, -1) },
});
