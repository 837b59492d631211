import { useState } from 'preact/hooks';
import { shown, type WhoCan, whoCan } from '../../model/who-can.ts';
import { useApp } from '../parts/app.ts';
import { Empty, Form, Scrolled } from '../parts/basics.tsx';
import { AttemptFields, useAttempt } from './attempt.tsx';

type Found = WhoCan | 'reading' | undefined;

/** Who may do something, by the roles that are bound. */
export function WhoView(props: { readonly namespace: string }) {
  const { api, discovered } = useApp();
  const attempt = useAttempt(props.namespace);
  const [found, setFound] = useState<Found>();
  const find = async (): Promise<void> => {
    setFound('reading');
    const { namespace, ...wanted } = attempt.read();
    const all = await whoCan(api, { dialect: discovered.dialect, wanted, namespace });
    const grants = all.grants.filter(
      ({ names }) => names.length === 0 || wanted.name === '' || names.includes(wanted.name),
    );
    setFound({ ...all, grants });
  };
  return (
    <>
      <Form class="bar" submit={find}>
        <AttemptFields attempt={attempt} />
        <button type="submit" class="primary">
          Find
        </button>
      </Form>
      <div aria-live="polite">
        {found === 'reading' && <p>Reading roles and bindings…</p>}
        {typeof found === 'object' && <Grants {...found} />}
      </div>
    </>
  );
}

function Grants({ grants, unread }: WhoCan) {
  return (
    <>
      {unread.map(({ resource, message }) => (
        <p key={resource} class="warning">
          {message}
        </p>
      ))}
      <p>By roles that are bound; other authorizers may allow more.</p>
      {grants.length === 0 && <Empty>Nobody that could be found.</Empty>}
      <Scrolled label="Grants">
        <table class="grid">
          <thead>
            <tr>
              {['Subject', 'Where', 'By binding', 'By role'].map((head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {grants.map(({ subject, binding, role, namespace, names }) => (
              <tr key={`${shown(subject)} ${binding}`}>
                <td>{shown(subject)}</td>
                <td>
                  {namespace === '' ? 'everywhere' : namespace}
                  {names.length > 0 && `, only ${names.join(', ')}`}
                </td>
                <td>{binding}</td>
                <td>{role}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
    </>
  );
}
