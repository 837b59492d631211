import { useEffect, useId, useState } from 'preact/hooks';
import {
  type AccessDecision,
  type Attempt,
  accessMatrix,
  canI,
  type MatrixCell,
  type MatrixRow,
  matrixVerbs,
  type OwnRules,
  ownRules,
  subjectText,
  type WhoCan,
  whoCan,
} from '../../model/access.ts';
import { messageOf } from '../../model/failure.ts';
import { resourceName } from '../../model/kinds.ts';
import { type AccessTab, accessTabs } from '../../model/route.ts';
import { useApp, useLatest, usePage } from '../parts/app.ts';
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

/** Shows the user's permissions and checks access. */
export function AccessPage(props: { readonly tab: AccessTab; readonly namespace: string }) {
  const { tab, namespace } = props;
  usePage('Access');
  const View = { mine: OwnPermissionsView, ask: CheckView, who: WhoCanView }[tab];
  return (
    <section class="page">
      <header class="heading">
        <h1>Access</h1>
      </header>
      <nav class="tabs" aria-label="Access views">
        {accessTabs.map((accessTab) => (
          <Link
            key={accessTab}
            to={{ page: 'access', tab: accessTab, namespace }}
            aria-current={accessTab === tab ? 'page' : undefined}
          >
            {tabLabels[accessTab]}
          </Link>
        ))}
      </nav>
      <View namespace={namespace} />
    </section>
  );
}

/** Checks whether the user or another subject may perform an action. */
function CheckView(props: { readonly namespace: string }) {
  const { api, discovered } = useApp();
  const attempt = useAttempt(props.namespace);
  const [user, setUser] = useState('');
  const [groups, setGroups] = useState('');
  const [answer, setAnswer] = useState<AccessDecision | string>();
  const begin = useLatest();
  const check = async (): Promise<void> => {
    const { dialect } = discovered;
    const name = user.trim();
    const groupNames = groups.split(',').map((group) => group.trim());
    const subject = { user: name, groups: groupNames.filter((group) => group !== '') };
    const isCurrentUser = name === '' && subject.groups.length === 0;
    const of = { dialect, attempt: attempt.read(), ...(isCurrentUser ? {} : { subject }) };
    const isLatest = begin();
    const decision = await canI(api, of).catch(messageOf);
    if (isLatest()) setAnswer(decision);
  };
  return (
    <>
      <Form class="bar" submit={check}>
        <Field label="User">
          <TextInput value={user} onText={setUser} placeholder="current user" />
        </Field>
        <Field label="Groups">
          <TextInput value={groups} onText={setGroups} placeholder="team,staff" />
        </Field>
        <AttemptFields attempt={attempt} />
        <button type="submit" class="primary">
          Check
        </button>
      </Form>
      <div class="result" aria-live="polite">
        {typeof answer === 'string' && <Fault>{answer}</Fault>}
        {typeof answer === 'object' && <Decision decision={answer} />}
      </div>
    </>
  );
}

function Decision(props: { readonly decision: AccessDecision }) {
  const { isAllowed, isDenied, reason, evaluationError } = props.decision;
  return (
    <>
      <p class={`decision ${isAllowed ? 'good' : 'fault'}`}>{isAllowed ? 'Yes.' : 'No.'}</p>
      {isDenied && <p>Explicitly denied.</p>}
      {reason !== '' && <p>{reason}</p>}
      {evaluationError !== '' && <p class="warning">{evaluationError}</p>}
    </>
  );
}

/** The permissions of the user in a namespace: all kinds by all verbs. */
function OwnPermissionsView(props: { readonly namespace: string }) {
  const { api, discovered, workspace } = useApp();
  const { user, groups } = workspace.subject;
  const [input, setInput] = useState(props.namespace || 'default');
  const [namespace, setNamespace] = useState(input);
  const [withSubresources, setWithSubresources] = useState(false);
  const [rules, setRules] = useState<OwnRules | string>();
  const { dialect } = discovered;
  useEffect(() => {
    let isUnmounted = false;
    setRules(undefined);
    ownRules(api, { dialect, namespace: namespace.trim() })
      .catch(messageOf)
      .then(
        (read) => !isUnmounted && setRules(read),
        () => {},
      );
    return () => {
      isUnmounted = true;
    };
  }, [api, dialect, namespace]);
  return (
    <>
      {user === '' ? (
        <p>The server did not report your identity.</p>
      ) : (
        <p>
          You are <strong>{user}</strong> in {groups.join(', ')}.
        </p>
      )}
      <Form class="bar" submit={() => setNamespace(input)}>
        <NamespaceInput
          value={input}
          placeholder="default"
          onText={setInput}
          onCommit={setNamespace}
        />
        <Toggle label="With subresources" isOn={withSubresources} onChange={setWithSubresources} />
      </Form>
      <div aria-live="polite">
        {rules === undefined && <p>Loading…</p>}
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
          An authorizer cannot list its rules, so you may have more permissions than shown.
        </p>
      )}
      {rules.evaluationError !== '' && <p class="warning">{rules.evaluationError}</p>}
      <Scrolled label="Verbs by resource">
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
        <summary>Non-resource paths</summary>
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
  const [mark, label] = cellTexts[cell.kind];
  return (
    <td class={cell.kind} title={label} aria-label={label}>
      {mark}
    </td>
  );
}

type SearchState = WhoCan | 'reading' | undefined;

/** Lists the subjects that may perform an action according to RBAC. */
function WhoCanView(props: { readonly namespace: string }) {
  const { api, discovered } = useApp();
  const attempt = useAttempt(props.namespace);
  const [found, setFound] = useState<SearchState>();
  const begin = useLatest();
  const find = async (): Promise<void> => {
    setFound('reading');
    const isLatest = begin();
    const { namespace, ...permission } = attempt.read();
    const all = await whoCan(api, { dialect: discovered.dialect, permission, namespace });
    const grants = all.grants.filter(
      ({ names }) =>
        names.length === 0 || permission.name === '' || names.includes(permission.name),
    );
    if (isLatest()) setFound({ ...all, grants });
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
      <p>Based on RBAC roles and bindings. Other authorizers may grant more.</p>
      {grants.length === 0 && <Empty>No subjects found.</Empty>}
      <Scrolled label="Grants">
        <table class="grid">
          <TableHead columns={['Subject', 'Namespace', 'Binding', 'Role']} />
          <tbody>
            {grants.map(({ subject, binding, role, namespace, names }) => (
              <tr key={`${subjectText(subject)} ${binding}`}>
                <td>{subjectText(subject)}</td>
                <td>
                  {namespace === '' ? 'all namespaces' : namespace}
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
  readonly input: AttemptInput;
  set(change: Partial<AttemptInput>): void;
  read(): Attempt;
}

/** The initial input: reading pods. */
function useAttempt(namespace: string): AttemptState {
  const [input, setInput] = useState<AttemptInput>({
    verb: 'get',
    resource: 'pods',
    namespace,
    name: '',
  });
  return {
    input,
    set: (change) => setInput((before) => ({ ...before, ...change })),
    read() {
      const [full = '', subresource = ''] = input.resource.trim().split('/', 2);
      const [resource = '', ...group] = full.split('.');
      return {
        verb: input.verb.trim(),
        group: group.join('.'),
        resource,
        subresource,
        namespace: input.namespace.trim(),
        name: input.name.trim(),
      };
    },
  };
}

const otherVerbs = ['bind', 'escalate', 'impersonate', 'use', 'approve', '*'];

/** Inputs for verb, resource, and namespace. */
function AttemptFields(props: { readonly attempt: AttemptState }) {
  const { input, set } = props.attempt;
  const { discovered } = useApp();
  const id = useId();
  const resources = new Set(discovered.kinds.map(resourceName));
  return (
    <>
      <Field label="Verb">
        <TextInput
          isRequired
          suggestions={`${id}-verbs`}
          value={input.verb}
          onText={(verb) => set({ verb })}
        />
      </Field>
      <Field label="Resource">
        <TextInput
          isRequired
          suggestions={`${id}-resources`}
          value={input.resource}
          onText={(resource) => set({ resource })}
        />
      </Field>
      <NamespaceInput
        value={input.namespace}
        placeholder="all namespaces"
        onText={(namespace) => set({ namespace })}
      />
      <Field label="Name">
        <TextInput value={input.name} placeholder="any" onText={(name) => set({ name })} />
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
