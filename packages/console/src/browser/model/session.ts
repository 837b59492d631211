import { dialectNames, dialectOf, type JsonValue } from '@wheelhouse/machinery/browser';
import { type Subject, whoAmI } from './access.ts';
import { type Api, type Credential, createApi } from './api.ts';
import { ApiFailure, messageOf } from './failure.ts';
import type { Fetch, TokenStore } from './ports.ts';

/** The state of a session. */
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
  /**
   * The API for the pages of a user. It sends nothing while that user is not signed in, so that
   * what one user began does not continue with the credential of the next; requests reject with
   * 401.
   */
  apiOf(subject: Subject): Api;
  /** Signs in with the token from before a reload, or else with the browser's certificate. */
  resume(): Promise<void>;
  /** Signs in; an empty `token` uses only the browser's certificate. */
  signIn(token: string): Promise<void>;
  signOut(): void;
}

/** Whether two sign-ins are of the same user; unknown users differ. */
export function isSameUser(one: Subject, other: Subject): boolean {
  return one === other || (one.user !== '' && one.user === other.user);
}

/** The user of requests without credentials. */
const anonymous = 'system:anonymous';

/** Creates a signed-out session. Calls `onChange` after each change of its state. */
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
  const leave = (message: string): void => {
    credential = { token: undefined };
    set({ phase: 'signed out', message });
  };
  const clearCredential = (message: string): void => {
    tokens.write(undefined);
    leave(message);
  };
  const onUnauthorized = (rejected: Credential): void => {
    // A late response may belong to an earlier credential.
    if (state.phase === 'signed in' && rejected === credential) {
      clearCredential('Your session has expired. Sign in again.');
    }
  };
  const { fetch, base, parseYaml } = options;
  const api = createApi({ fetch, base, credential: () => credential, onUnauthorized, parseYaml });
  const enter = async (token: string | undefined, anonymousMessage: string): Promise<void> => {
    credential = { token };
    set({ phase: 'signing in' });
    try {
      const subject = await readIdentity(api);
      if (subject.user === anonymous) return clearCredential(anonymousMessage);
      tokens.write(token);
      set({ phase: 'signed in', subject });
    } catch (error) {
      const isAnonymous = token === undefined && isRefusal(error);
      const message = isAnonymous ? anonymousMessage : refusalText(error);
      // A server that does not answer says nothing about the token; reloading the page tries again.
      if (isRefusal(error)) clearCredential(message);
      else leave(message);
    }
  };
  return {
    get state() {
      return state;
    },
    api,
    apiOf: (subject) =>
      apiWhile(api, () => state.phase === 'signed in' && isSameUser(state.subject, subject)),
    resume: () => enter(tokens.read(), ''),
    signIn(input) {
      const token = input.trim();
      if (token === '') return enter(undefined, 'The browser presented no certificate.');
      // The Authorization header allows no other characters.
      if (!/^[!-~]+$/.test(token)) {
        set({ phase: 'signed out', message: 'The token contains invalid characters.' });
        return Promise.resolve();
      }
      return enter(token, 'The server does not recognize this token.');
    },
    signOut: () => clearCredential(''),
  };
}

/** The API while a sign-in lasts; afterward, it rejects like a server that knows no user. */
function apiWhile(api: Api, isSignedIn: () => boolean): Api {
  const check = async (): Promise<void> => {
    if (isSignedIn()) return;
    const message = 'You are signed out.';
    throw new ApiFailure({ code: 401, reason: 'Unauthorized', message });
  };
  return {
    send: (request) => check().then(() => api.send(request)),
    json: (request) => check().then(() => api.json(request)),
    stream: (request) => check().then(() => api.stream(request)),
  };
}

/**
 * Requests the identity of the user in each dialect, because discovery has not run yet. If the
 * server does not serve the review or denies it, the user is signed in without a name.
 */
async function readIdentity(api: Api): Promise<Subject> {
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
  if (error instanceof ApiFailure && error.code === 401) return 'The server rejected this token.';
  return messageOf(error);
}
