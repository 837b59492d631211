import { useEffect, useState } from 'preact/hooks';
import {
  accessMatrix,
  type MatrixCell,
  type MatrixRow,
  matrixVerbs,
  type OwnRules,
  ownRules,
} from '../../model/access.ts';
import { messageOf } from '../../model/failure.ts';
import { resourceName } from '../../model/kinds.ts';
import { useApp } from '../parts/app.ts';
import { Fault, Form, NamespaceInput, Scrolled, Toggle } from '../parts/basics.tsx';

/** What the user may do in a namespace: all kinds by all verbs. */
export function MineView(props: { readonly namespace: string }) {
  const { api, discovered, workspace } = useApp();
  const { user, groups } = workspace.subject;
  const [typed, setTyped] = useState(props.namespace || 'default');
  const [namespace, setNamespace] = useState(typed);
  const [withSubresources, setWithSubresources] = useState(false);
  const [rules, setRules] = useState<OwnRules | string>();
  const { dialect } = discovered;
  useEffect(() => {
    let isGone = false;
    setRules(undefined);
    ownRules(api, { dialect, namespace: namespace.trim() })
      .catch(messageOf)
      .then(
        (read) => !isGone && setRules(read),
        () => {},
      );
    return () => {
      isGone = true;
    };
  }, [api, dialect, namespace]);
  return (
    <>
      {user === '' ? (
        <p>The server does not say who you are.</p>
      ) : (
        <p>
          You are <strong>{user}</strong> in {groups.join(', ')}.
        </p>
      )}
      <Form class="bar" submit={() => setNamespace(typed)}>
        <NamespaceInput
          value={typed}
          placeholder="default"
          onText={setTyped}
          onCommit={setNamespace}
        />
        <Toggle label="With subresources" isOn={withSubresources} onChange={setWithSubresources} />
      </Form>
      <div aria-live="polite">
        {rules === undefined && <p>Asking the server…</p>}
        {typeof rules === 'string' && <Fault>{rules}</Fault>}
      </div>
      {typeof rules === 'object' && <Matrix {...{ rules, withSubresources }} />}
    </>
  );
}

function Matrix(props: { readonly rules: OwnRules; readonly withSubresources: boolean }) {
  const { rules, withSubresources } = props;
  const { discovered } = useApp();
  const subresources = withSubresources ? 'shown' : 'hidden';
  const rows = accessMatrix(discovered.kinds, rules.rules, { subresources });
  return (
    <>
      {rules.isIncomplete && (
        <p class="warning">
          An authorizer cannot list its rules: more may be allowed than is shown.
        </p>
      )}
      {rules.evaluationError !== '' && <p class="warning">{rules.evaluationError}</p>}
      <Scrolled label="Verbs by resources">
        <table class="grid matrix">
          <thead>
            <tr>
              {['Resource', ...matrixVerbs].map((head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={nameOf(row)} row={row} />
            ))}
          </tbody>
        </table>
      </Scrolled>
      <details>
        <summary>Paths</summary>
        <ul>
          {rules.paths.map(({ path, verbs }, index) => (
            <li key={index}>
              <code>{path}</code> {verbs.join(', ')}
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

function Row(props: { readonly row: MatrixRow }) {
  return (
    <tr>
      <th scope="row">{nameOf(props.row)}</th>
      {props.row.cells.map((cell, index) => (
        <Cell key={matrixVerbs[index]} cell={cell} />
      ))}
    </tr>
  );
}

function nameOf({ kind, subresource }: MatrixRow): string {
  return subresource === '' ? resourceName(kind) : `${resourceName(kind)}/${subresource}`;
}

const texts = { yes: ['✓', 'yes'], no: ['✗', 'no'], none: ['', 'not a verb of it'] } as const;

function Cell(props: { readonly cell: MatrixCell }) {
  const { cell } = props;
  if (cell.kind === 'named') {
    const names = cell.names.join(', ');
    return (
      <td class="named" title={`for ${names}`}>
        only {names}
      </td>
    );
  }
  const [mark, said] = texts[cell.kind];
  return (
    <td class={cell.kind} title={said} aria-label={said}>
      {mark}
    </td>
  );
}
