import { useEffect, useRef, useState } from 'preact/hooks';
import type { Session, SessionState } from '../model/session.ts';
import { Button, Fault, Field, Form } from './parts/basics.tsx';

/** Asks who the user is; the state's message says why it asks again. */
export function SignIn(props: { readonly session: Session; readonly state: SessionState }) {
  const { session, state } = props;
  const [token, setToken] = useState('');
  const input = useRef<HTMLInputElement>(null);
  const isAsking = state.phase === 'signed out';
  useEffect(() => {
    if (isAsking) input.current?.focus();
  }, [isAsking]);
  if (!isAsking) {
    return (
      <main class="sign-in">
        <p role="status">Signing in…</p>
      </main>
    );
  }
  const signIn = (): void => {
    // Not even the form keeps it.
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
        The token stays in this tab until you close it, and is sent to this server only.
      </p>
    </main>
  );
}
