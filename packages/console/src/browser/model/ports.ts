/**
 * What the console needs of the browser, as ports: its logic then runs in node too, where the tests
 * call a real server with node's own `fetch`.
 */

/** The part of `fetch` that is used; the browser's and node's are both one. */
export type Fetch = (url: string, request: FetchRequest) => Promise<FetchAnswer>;

export interface FetchRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly cache: 'no-store';
  /** Lets the browser show a client certificate, to this server alone. */
  readonly credentials: 'same-origin';
  /** A redirect would carry the token elsewhere. */
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

/** Keeps the token for as long as the tab lives; `sessionStorage` is one. */
export interface TokenStore {
  read(): string | undefined;
  write(token: string | undefined): void;
}
