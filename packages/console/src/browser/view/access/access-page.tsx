import { useState } from 'preact/hooks';
import { canI, type Verdict } from '../../model/access.ts';
import { messageOf } from '../../model/failure.ts';
import { type AccessTab, accessTabs } from '../../model/route.ts';
import { useApp, usePage } from '../parts/app.ts';
import { Fault, Field, Form, Link, TextInput } from '../parts/basics.tsx';
import { AttemptFields, useAttempt } from './attempt.tsx';
import { MineView } from './mine-view.tsx';
import { WhoView } from './who-view.tsx';

const tabLabels: Readonly<Record<AccessTab, string>> = {
  mine: 'What I may do',
  ask: 'May somebody …?',
  who: 'Who may …?',
};

/** Who may do what. */
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

/** Whether the user, or somebody else, may do something. */
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
      {isDenied && <p>It is forbidden outright.</p>}
      {reason !== '' && <p>{reason}</p>}
      {evaluationError !== '' && <p class="warning">{evaluationError}</p>}
    </>
  );
}
