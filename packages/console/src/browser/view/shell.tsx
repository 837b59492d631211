import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { createSession, isSameUser, type Session, type SessionState } from '../model/session.ts';
import { Workspace } from '../model/workspace.ts';
import type { Host } from './parts/app.ts';
import { Button, Fault, Field, Form } from './parts/basics.tsx';
import { WorkspaceView } from './workspace-view.tsx';

/** The sign-in form; the state's message says why it is shown. */
function SignIn(props: { readonly session: Session; readonly state: SessionState }) {
  const { session, state } = props;
  const [token, setToken] = useState('');
  const input = useRef<HTMLInputElement>(null);
  const isSignedOut = state.phase === 'signed out';
  useEffect(() => {
    if (isSignedOut) input.current?.focus();
  }, [isSignedOut]);
  if (!isSignedOut) {
    return (
      <main class="sign-in">
        <p role="status">Signing in…</p>
      </main>
    );
  }
  const signIn = (): void => {
    // The form must not keep the token.
    setToken('');
    void session.signIn(token);
  };
  return (
    <main class="sign-in">
      <h1>Wheelhouse</h1>
      {state.message !== '' && <Fault>{state.message}</Fault>}
      <Form submit={signIn}>
        <Field label="Token">
          <input
            ref={input}
            type="password"
            autocomplete="off"
            required
            spellcheck={false}
            placeholder="Bearer token"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </Field>
        <button type="submit" class="primary">
          Sign in
        </button>
        <Button act={() => session.signIn('')}>Use a certificate</Button>
      </Form>
      <p class="hint">
        The token is kept in this tab until you close it and is sent only to this server.
      </p>
    </main>
  );
}

/** Starts the console: signs in with stored credentials, or shows the sign-in form. */
export function startConsole(host: Host): { hasUnsaved(): boolean } {
  let workspace: Workspace | undefined;
  /** The title of the page that the sign-in form hides. */
  let title = '';
  // The workspace has its own root, so that it can be restored after an expired sign-in.
  const place = document.createElement('div');
  place.className = 'place';
  const signInRoot = document.createElement('div');
  const session = createSession({
    fetch: host.fetch,
    base: host.base,
    tokens: host.tokens,
    parseYaml: async (text) => {
      const { readYaml } = await import('../model/yaml.ts');
      const read = readYaml(text);
      return read.fault === undefined ? read.value : undefined;
    },
    onChange: (state) => show(state),
  });
  const leave = (): void => {
    workspace?.close();
    workspace = undefined;
    render(null, place);
  };
  const enter = ({ subject }: Extract<SessionState, { phase: 'signed in' }>): void => {
    if (workspace !== undefined && isSameUser(workspace.subject, subject)) {
      document.title = title;
      workspace.resume();
      return;
    }
    leave();
    const opened = new Workspace(subject, { ...host, api: session.apiOf(subject) });
    workspace = opened;
    const signOut = (): void => {
      if (opened.mayLeave()) session.signOut();
    };
    render(<WorkspaceView host={host} workspace={workspace} signOut={signOut} />, place);
  };
  const show = (state: SessionState): void => {
    if (state.phase === 'signed in') {
      enter(state);
      host.root.replaceChildren(place);
      return;
    }
    if (state.phase === 'signed out' && state.message === '') leave();
    if (host.root.firstChild === place) title = document.title;
    document.title = 'Sign in – Wheelhouse';
    render(<SignIn session={session} state={state} />, signInRoot);
    host.root.replaceChildren(signInRoot);
  };
  void session.resume();
  return { hasUnsaved: () => workspace?.hasUnsaved() === true };
}
