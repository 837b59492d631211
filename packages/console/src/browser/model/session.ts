import { dialectNames, dialectOf, type JsonValue } from '@wheelhouse/machinery/browser';
import { type Subject, whoAmI } from './access.ts';
import { type Api, type Credential, createApi } from './api.ts';
import { ApiFailure, messageOf } from './failure.ts';
import type { Fetch, TokenStore } from './ports.ts';

/** State of the sign-in. */
export type SessionState =
  | { readonly phase: 'signing in' }
  | { readonly phase: 'signed out'; readonly message: string }
  | { readonly phase: 'signed in'; readonly subject: Subject };

/**
 * The sign-in of one tab. The token is kept only in the tab's session storage and in requests to
 * this server, never in a URL.
 */
export interface Session {
  readonly state: SessionState;
  readonly api: Api;
  /** Signs in with the token from before a reload, or else with the browser's certificate. */
  resume(): Promise<void>;
  /** Signs in; an empty `token` uses only the browser's certificate. */
  signIn(token: string): Promise<void>;
  signOut(): void;
}

/** The user of requests without credentials. */
const anonymous = 'system:anonymous';

/** Makes a session that is signed out; calls `onChange` after each change of its state. */
export function createSession(options: {
  readonly fetch: Fetch;
  readonly base: string;
  readonly tokens: TokenStore;
  readonly parseYaml: (text: string) => Promise<JsonValue | undefined>;
  readonly onChange: (state: SessionState) => void;
}): Session {
  const { tokens, onChange } = options;
  let state: SessionState = { phase: 'signed out', message: '' };
  let credential: Credential = { token: undefined };
  const set = (next: SessionState): void => {
    state = next;
    onChange(state);
  };
  const forget = (message: string): void => {
    credential = { token: undefined };
    tokens.write(undefined);
    set({ phase: 'signed out', message });
  };
  const onUnauthorized = (refused: Credential): void => {
    // A late response may belong to an earlier credential.
    if (state.phase === 'signed in' && refused === credential)
      forget('The server no longer accepts this sign-in.');
  };
  const { fetch, base, parseYaml } = options;
  const api = createApi({ fetch, base, credential: () => credential, onUnauthorized, parseYaml });
  const enter = async (token: string | undefined, anonymousMessage: string): Promise<void> => {
    credential = { token };
    set({ phase: 'signing in' });
    try {
      const subject = await identity(api);
      if (subject.user === anonymous) return forget(anonymousMessage);
      tokens.write(token);
      set({ phase: 'signed in', subject });
    } catch (error) {
      forget(token === undefined && isRefusal(error) ? anonymousMessage : refusalText(error));
    }
  };
  return {
    get state() {
      return state;
    },
    api,
    resume: () => enter(tokens.read(), ''),
    signIn(input) {
      const typed = input.trim();
      if (typed === '') return enter(undefined, 'The browser presented no certificate.');
      // The Authorization header supports no other characters.
      if (!/^[!-~]+$/.test(typed)) {
        set({
          phase: 'signed out',
          message: 'This is not a token: it contains invalid characters.',
        });
        return Promise.resolve();
      }
      return enter(typed, 'The server does not recognize this token.');
    },
    signOut: () => forget(''),
  };
}

/**
 * Asks who the user is in each dialect, since the dialect of the server is not known yet. If the
 * server does not serve the review, or denies it, the user is signed in without a name.
 */
async function identity(api: Api): Promise<Subject> {
  for (const name of dialectNames) {
    try {
      return await whoAmI(api, dialectOf(name));
    } catch (error) {
      // This dialect is not served: users with few permissions get 403, others 404.
      if (!(error instanceof ApiFailure) || ![403, 404].includes(error.code)) throw error;
    }
  }
  await api.json({ path: '/api' });
  return { user: '', groups: [] };
}

function isRefusal(error: unknown): boolean {
  return error instanceof ApiFailure && [401, 403].includes(error.code);
}

function refusalText(error: unknown): string {
  if (error instanceof ApiFailure && error.code === 401) {
    return 'The server does not accept this token.';
  }
  return messageOf(error);
}
