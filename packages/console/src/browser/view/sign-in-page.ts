import type { Session } from '../model/session.ts';
import { button, element, form, labelled } from './element.ts';

/** Asks who the user is; `message` says why it asks again. */
export function signInPage(session: Session, message: string): HTMLElement {
  const token = element('input', {
    type: 'password',
    autocomplete: 'off',
    required: true,
    autofocus: true,
    spellcheck: 'false',
    placeholder: 'a bearer token',
  });
  const signIn = (): void => {
    const typed = token.value;
    // Not even the form keeps it.
    token.value = '';
    void session.signIn(typed);
  };
  return element(
    'main',
    { class: 'sign-in' },
    element('h1', {}, 'Wheelhouse'),
    message !== '' && element('p', { class: 'fault', role: 'alert' }, message),
    form(
      {},
      signIn,
      labelled('Token', token),
      element('button', { type: 'submit', class: 'primary' }, 'Sign in'),
      button('Use a certificate', () => session.signIn('')),
    ),
    element(
      'p',
      { class: 'hint' },
      'The token is kept in this tab until it is closed, and is sent to this server alone.',
    ),
  );
}
