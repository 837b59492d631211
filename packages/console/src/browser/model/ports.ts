/**
 * The browser features that the model uses, as interfaces. The tests run the model in Node.js
 * against a real server with Node's `fetch`.
 */

/** The part of `fetch` that the console uses. */
export type Fetch = (url: string, request: FetchRequest) => Promise<FetchResponse>;

interface FetchRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly cache: 'no-store';
  /** Allows client certificates, for this origin only. */
  readonly credentials: 'same-origin';
  /** A redirect would send the token to another server. */
  readonly redirect: 'error';
}

/** The part of `Response` that the console uses. */
export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: { getReader(): BytesReader } | null;
  text(): Promise<string>;
}

/** The part of `ReadableStreamDefaultReader` that the console uses. */
export interface BytesReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
}

/** Stores a text, such as the token, until the tab is closed. */
export interface TokenStore {
  read(): string | undefined;
  write(token: string | undefined): void;
}
