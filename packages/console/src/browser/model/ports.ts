/**
 * Ports for the browser features that the console needs. Its logic also runs in Node.js, where the
 * tests call a real server with Node's `fetch`.
 */

/** The part of `fetch` that the console uses. */
export type Fetch = (url: string, request: FetchRequest) => Promise<FetchAnswer>;

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

export interface FetchAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: { getReader(): BytesReader } | null;
  text(): Promise<string>;
}

export interface BytesReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
}

/** Keeps the token while the tab is open, such as `sessionStorage`. */
export interface TokenStore {
  read(): string | undefined;
  write(token: string | undefined): void;
}
