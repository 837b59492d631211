import { dialectNames, dialectOf, type JsonValue } from '@wheelhouse/machinery/browser';
import { type Subject, whoAmI } from './access.ts';
import { type Api, type Credential, createApi } from './api.ts';
import { ApiFailure, messageOf } from './failure.ts';
import type { Fetch, TokenStore } from './ports.ts';

/** How the user stands to the server. */
export type SessionState =
  | { readonly phase: 'signing in' }
  | { readonly phase: 'signed out'; readonly message: string }
  | { readonly phase: 'signed in'; readonly subject: Subject };

/**
 * Who the user is, for as long as the tab lives. The token stands in the tab's own storage, which no
 * other tab sees and which ends with it, and in requests to this server; never in a URL.
 */
export interface Session {
  readonly state: SessionState;
  readonly api: Api;
  /** Goes on with the token of before a reload, or else with the browser's certificate. */
  resume(): Promise<void>;
  /** `token` empty: with the browser's certificate alone. */
  signIn(token: string): Promise<void>;
  signOut(): void;
}

/** Whom the server takes everybody for who shows nothing. */
const anonymous = 'system:anonymous';

/** A session that begins signed out; `onChange` is called after each change of its state. */
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
    // An answer may be late: what it is about is not what is shown by now.
    if (state.phase === 'signed in' && refused === credential)
      forget('The server no longer accepts this sign-in.');
  };
  const { fetch, base, parseYaml } = options;
  const api = createApi({ fetch, base, credential: () => credential, onUnauthorized, parseYaml });
  const enter = async (token: string | undefined, onNobody: string): Promise<void> => {
    credential = { token };
    set({ phase: 'signing in' });
    try {
      const subject = await identity(api);
      if (subject.user === anonymous) return forget(onNobody);
      tokens.write(token);
      set({ phase: 'signed in', subject });
    } catch (error) {
      forget(token === undefined && isRefusal(error) ? onNobody : refusalText(error));
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
      if (typed === '') return enter(undefined, 'The browser showed no certificate.');
      // The Authorization header cannot carry other characters.
      if (!/^[!-~]+$/.test(typed)) {
        set({ phase: 'signed out', message: 'This is no token: it has characters no token has.' });
        return Promise.resolve();
      }
      return enter(typed, 'The server takes this token for nobody.');
    },
    signOut: () => forget(''),
  };
}

/**
 * Who the user is; of which dialect the server is, is not known before. A server that has no such
 * review, or not for this user, may still let the user in: then nobody says who that is.
 */
async function identity(api: Api): Promise<Subject> {
  for (const name of dialectNames) {
    try {
      return await whoAmI(api, dialectOf(name));
    } catch (error) {
      // Not this dialect's group: whoever may do little is told 403, everybody else 404.
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
