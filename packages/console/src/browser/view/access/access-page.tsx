import { useEffect, useId, useState } from 'preact/hooks';
import {
  type Attempt,
  accessMatrix,
  canI,
  type MatrixCell,
  type MatrixRow,
  matrixVerbs,
  type OwnRules,
  ownRules,
  subjectText,
  type Verdict,
  type WhoCan,
  whoCan,
} from '../../model/access.ts';
import { messageOf } from '../../model/failure.ts';
import { resourceName } from '../../model/kinds.ts';
import { type AccessTab, accessTabs } from '../../model/route.ts';
import { useApp, usePage } from '../parts/app.ts';
import {
  Empty,
  Fault,
  Field,
  Form,
  Link,
  NamespaceInput,
  Scrolled,
  TableHead,
  TextInput,
  Toggle,
} from '../parts/basics.tsx';

const tabLabels: Readonly<Record<AccessTab, string>> = {
  mine: 'My permissions',
  ask: 'Check access',
  who: 'Who can …?',
};

/** Access checks. */
export function AccessPage(props: { readonly tab: AccessTab; readonly namespace: string }) {
  const { tab, namespace } = props;
  usePage('Access');
  const View = { mine: MineView, ask: AskView, who: WhoView }[tab];
  return (
    <section class="page">
      <header class="heading">
        <h1>Access</h1>
      </header>
      <nav class="tabs" aria-label="Questions">
        {accessTabs.map((one) => (
          <Link
            key={one}
            to={{ page: 'access', tab: one, namespace }}
            aria-current={one === tab ? 'page' : undefined}
          >
            {tabLabels[one]}
          </Link>
        ))}
      </nav>
      <View namespace={namespace} />
    </section>
  );
}

/** Checks whether the user or another subject may do something. */
function AskView(props: { readonly namespace: string }) {
  const { api, discovered } = useApp();
  const attempt = useAttempt(props.namespace);
  const [user, setUser] = useState('');
  const [groups, setGroups] = useState('');
  const [answer, setAnswer] = useState<Verdict | string>();
  const ask = async (): Promise<void> => {
    const { dialect } = discovered;
    const named = user.trim();
    const among = groups.split(',').map((group) => group.trim());
    const subject = { user: named, groups: among.filter((group) => group !== '') };
    const isMyself = named === '' && subject.groups.length === 0;
    const of = { dialect, attempt: attempt.read(), ...(isMyself ? {} : { subject }) };
    setAnswer(await canI(api, of).catch(messageOf));
  };
  return (
    <>
      <Form class="bar" submit={ask}>
        <Field label="User">
          <TextInput value={user} onText={setUser} placeholder="myself" />
        </Field>
        <Field label="Groups">
          <TextInput value={groups} onText={setGroups} placeholder="team,staff" />
        </Field>
        <AttemptFields attempt={attempt} />
        <button type="submit" class="primary">
          Ask
        </button>
      </Form>
      <div class="result" aria-live="polite">
        {typeof answer === 'string' && <Fault>{answer}</Fault>}
        {typeof answer === 'object' && <Answer verdict={answer} />}
      </div>
    </>
  );
}

function Answer(props: { readonly verdict: Verdict }) {
  const { isAllowed, isDenied, reason, evaluationError } = props.verdict;
  return (
    <>
      <p class={`verdict ${isAllowed ? 'good' : 'fault'}`}>{isAllowed ? 'Yes.' : 'No.'}</p>
      {isDenied && <p>It is explicitly denied.</p>}
      {reason !== '' && <p>{reason}</p>}
      {evaluationError !== '' && <p class="warning">{evaluationError}</p>}
    </>
  );
}

/** The permissions of the user in a namespace: all kinds by all verbs. */
function MineView(props: { readonly namespace: string }) {
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
          <TableHead columns={['Resource', ...matrixVerbs]} />
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

const cellTexts = {
  yes: ['✓', 'yes'],
  no: ['✗', 'no'],
  none: ['', 'not a verb of this resource'],
} as const;

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
  const [mark, said] = cellTexts[cell.kind];
  return (
    <td class={cell.kind} title={said} aria-label={said}>
      {mark}
    </td>
  );
}

type SearchState = WhoCan | 'reading' | undefined;

/** Finds who may do something according to RBAC. */
function WhoView(props: { readonly namespace: string }) {
  const { api, discovered } = useApp();
  const attempt = useAttempt(props.namespace);
  const [found, setFound] = useState<SearchState>();
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
        {found === 'reading' && <p>Loading roles and bindings…</p>}
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
      {grants.length === 0 && <Empty>No subjects found.</Empty>}
      <Scrolled label="Grants">
        <table class="grid">
          <TableHead columns={['Subject', 'Where', 'By binding', 'By role']} />
          <tbody>
            {grants.map(({ subject, binding, role, namespace, names }) => (
              <tr key={`${subjectText(subject)} ${binding}`}>
                <td>{subjectText(subject)}</td>
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

interface AttemptInput {
  readonly verb: string;
  /** In the syntax of kubectl: `deployments.apps/scale`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** The input of an access check. */
interface AttemptState {
  readonly typed: AttemptInput;
  set(change: Partial<AttemptInput>): void;
  read(): Attempt;
}

/** The initial input: reading pods. */
function useAttempt(namespace: string): AttemptState {
  const [typed, setTyped] = useState<AttemptInput>({
    verb: 'get',
    resource: 'pods',
    namespace,
    name: '',
  });
  return {
    typed,
    set: (change) => setTyped((before) => ({ ...before, ...change })),
    read() {
      const [full = '', subresource = ''] = typed.resource.trim().split('/', 2);
      const [resource = '', ...group] = full.split('.');
      return {
        verb: typed.verb.trim(),
        group: group.join('.'),
        resource,
        subresource,
        namespace: typed.namespace.trim(),
        name: typed.name.trim(),
      };
    },
  };
}

const otherVerbs = ['bind', 'escalate', 'impersonate', 'use', 'approve', '*'];

/** Inputs for verb, resource, and namespace. */
function AttemptFields(props: { readonly attempt: AttemptState }) {
  const { typed, set } = props.attempt;
  const { discovered } = useApp();
  const id = useId();
  const resources = new Set(discovered.kinds.map(resourceName));
  return (
    <>
      <Field label="Verb">
        <TextInput
          isRequired
          suggestions={`${id}-verbs`}
          value={typed.verb}
          onText={(verb) => set({ verb })}
        />
      </Field>
      <Field label="Resource">
        <TextInput
          isRequired
          suggestions={`${id}-resources`}
          value={typed.resource}
          onText={(resource) => set({ resource })}
        />
      </Field>
      <NamespaceInput
        value={typed.namespace}
        placeholder="everywhere"
        onText={(namespace) => set({ namespace })}
      />
      <Field label="Name">
        <TextInput value={typed.name} placeholder="any" onText={(name) => set({ name })} />
      </Field>
      <Options id={`${id}-verbs`} values={[...matrixVerbs, ...otherVerbs]} />
      <Options id={`${id}-resources`} values={[...resources]} />
    </>
  );
}

function Options(props: { readonly id: string; readonly values: readonly string[] }) {
  return (
    <datalist id={props.id}>
      {props.values.map((value) => (
        <option key={value} value={value} />
      ))}
    </datalist>
  );
}
