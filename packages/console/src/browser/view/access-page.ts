import {
  type Attempt,
  accessMatrix,
  canI,
  type MatrixCell,
  matrixVerbs,
  type OwnRules,
  ownRules,
} from '../model/access.ts';
import { messageOf } from '../model/failure.ts';
import { type Kind, resourceName } from '../model/kinds.ts';
import { type AccessTab, accessTabs, hashOf } from '../model/route.ts';
import { shown, whoCan } from '../model/who-can.ts';
import type { Page, PageContext } from './context.ts';
import { element, fill, form, labelled } from './element.ts';
import { namespaceInput } from './table-page.ts';

const tabLabels: Readonly<Record<AccessTab, string>> = {
  mine: 'What I may do',
  ask: 'May somebody …?',
  who: 'Who may …?',
};

/** Who may do what. */
export function accessPage(
  context: PageContext,
  of: { readonly tab: AccessTab; readonly namespace: string },
): Page {
  const { tab, namespace } = of;
  const links = accessTabs.map((one) =>
    element(
      'a',
      {
        href: hashOf({ page: 'access', tab: one, namespace }),
        'aria-current': one === tab ? 'page' : undefined,
      },
      tabLabels[one],
    ),
  );
  const body = { mine: mineView, ask: askView, who: whoView }[tab](context, namespace);
  return {
    title: 'Access',
    root: element(
      'section',
      { class: 'page' },
      element('header', { class: 'heading' }, element('h1', {}, 'Access')),
      element('nav', { class: 'tabs', 'aria-label': 'Questions' }, ...links),
      body,
    ),
    close: () => {},
  };
}

function mineView(context: PageContext, namespace: string): HTMLElement {
  const { user, groups } = context.subject;
  const within = namespaceInput(context, namespace || 'default', 'default');
  const result = element('div', { class: 'scroll', 'aria-live': 'polite' });
  const subresources = element('input', { type: 'checkbox' });
  let rules: OwnRules | undefined;
  const draw = (): void => {
    if (rules !== undefined) fill(result, ...matrixParts(context, rules, subresources.checked));
  };
  const read = async (): Promise<void> => {
    fill(result, 'Asking the server…');
    try {
      const { dialect } = context.discovered();
      rules = await ownRules(context.api, { dialect, namespace: within.input.value.trim() });
      draw();
    } catch (error) {
      fill(result, element('p', { class: 'fault' }, messageOf(error)));
    }
  };
  subresources.addEventListener('change', draw);
  within.input.addEventListener('change', () => void read());
  void read();
  return element(
    'div',
    {},
    user === ''
      ? element('p', {}, 'The server does not say who you are.')
      : element('p', {}, 'You are ', element('strong', {}, user), ` in ${groups.join(', ')}.`),
    form(
      { class: 'bar' },
      () => void read(),
      labelled('Namespace', within.root),
      labelled('With subresources', subresources),
    ),
    result,
  );
}

function matrixParts(
  context: PageContext,
  rules: OwnRules,
  withSubresources: boolean,
): HTMLElement[] {
  const subresources = withSubresources ? 'shown' : 'hidden';
  const rows = accessMatrix(context.discovered().kinds, rules.rules, { subresources });
  const heads = ['Resource', ...matrixVerbs].map((head) => element('th', { scope: 'col' }, head));
  const notes = [
    ...(rules.isIncomplete
      ? ['An authorizer cannot list its rules: more may be allowed than is shown.']
      : []),
    ...(rules.evaluationError === '' ? [] : [rules.evaluationError]),
  ];
  const paths = rules.paths.map(({ path, verbs }) =>
    element('li', {}, element('code', {}, path), ` ${verbs.join(', ')}`),
  );
  return [
    ...notes.map((note) => element('p', { class: 'warning' }, note)),
    element(
      'table',
      { class: 'grid matrix' },
      element('thead', {}, element('tr', {}, ...heads)),
      element(
        'tbody',
        {},
        ...rows.map(({ kind, subresource, cells }) =>
          element(
            'tr',
            {},
            element('th', { scope: 'row' }, nameOf(kind, subresource)),
            ...cells.map(cellOf),
          ),
        ),
      ),
    ),
    element('details', {}, element('summary', {}, 'Paths'), element('ul', {}, ...paths)),
  ];
}

function nameOf(kind: Kind, subresource: string): string {
  return subresource === '' ? resourceName(kind) : `${resourceName(kind)}/${subresource}`;
}

function cellOf(cell: MatrixCell): HTMLElement {
  if (cell.kind === 'named') {
    const names = cell.names.join(', ');
    return element('td', { class: 'named', title: `for ${names}` }, `only ${names}`);
  }
  const texts = { yes: ['✓', 'yes'], no: ['✗', 'no'], none: ['', 'not a verb of it'] } as const;
  const [mark, said] = texts[cell.kind];
  return element('td', { class: cell.kind, title: said, 'aria-label': said }, mark);
}

interface AttemptForm {
  readonly fields: readonly HTMLElement[];
  read(): Attempt;
}

/** Verb, resource and where; the resource is named as on a command line: `deployments.apps/scale`. */
function attemptForm(context: PageContext, namespace: string): AttemptForm {
  const { kinds } = context.discovered();
  const text = (value: string, list?: string) =>
    element('input', { value, list, required: true, autocomplete: 'off', spellcheck: 'false' });
  const verb = text('get', 'verbs');
  const resource = text('pods', 'resources');
  const within = namespaceInput(context, namespace, 'everywhere');
  const name = element('input', { placeholder: 'any', autocomplete: 'off', spellcheck: 'false' });
  const verbs = [...matrixVerbs, 'bind', 'escalate', 'impersonate', 'use', 'approve', '*'];
  const names = new Set(kinds.map(resourceName));
  const listOf = (id: string, values: Iterable<string>) =>
    element('datalist', { id }, ...[...values].map((value) => element('option', { value })));
  return {
    fields: [
      labelled('Verb', verb),
      labelled('Resource', resource),
      labelled('Namespace', within.root),
      labelled('Name', name),
      listOf('verbs', verbs),
      listOf('resources', names),
    ],
    read() {
      const [full = '', subresource = ''] = resource.value.trim().split('/', 2);
      const [plain = '', ...group] = full.split('.');
      return {
        verb: verb.value.trim(),
        group: group.join('.'),
        resource: plain,
        subresource,
        namespace: within.input.value.trim(),
        name: name.value.trim(),
      };
    },
  };
}

function askView(context: PageContext, namespace: string): HTMLElement {
  const attempt = attemptForm(context, namespace);
  const user = element('input', {
    placeholder: 'myself',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const groups = element('input', {
    placeholder: 'team,staff',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const result = element('div', { class: 'result', 'aria-live': 'polite' });
  const ask = async (): Promise<void> => {
    const { dialect } = context.discovered();
    const named = user.value.trim();
    const among = groups.value.split(',').map((group) => group.trim());
    const subject = { user: named, groups: among.filter((group) => group !== '') };
    const isMyself = named === '' && subject.groups.length === 0;
    try {
      const of = { dialect, attempt: attempt.read(), ...(isMyself ? {} : { subject }) };
      const { isAllowed, isDenied, reason, evaluationError } = await canI(context.api, of);
      fill(
        result,
        element('p', { class: isAllowed ? 'good' : 'fault' }, isAllowed ? 'Yes.' : 'No.'),
        isDenied && element('p', {}, 'It is forbidden outright.'),
        reason !== '' && element('p', {}, reason),
        evaluationError !== '' && element('p', { class: 'warning' }, evaluationError),
      );
    } catch (error) {
      fill(result, element('p', { class: 'fault' }, messageOf(error)));
    }
  };
  const submit = element('button', { type: 'submit', class: 'primary' }, 'Ask');
  const who = [labelled('User', user), labelled('Groups', groups)];
  return element(
    'div',
    {},
    form({ class: 'bar' }, () => void ask(), ...who, ...attempt.fields, submit),
    result,
  );
}

function whoView(context: PageContext, namespace: string): HTMLElement {
  const attempt = attemptForm(context, namespace);
  const result = element('div', { class: 'scroll', 'aria-live': 'polite' });
  const ask = async (): Promise<void> => {
    fill(result, 'Reading roles and bindings…');
    const { dialect } = context.discovered();
    const { namespace: within, ...wanted } = attempt.read();
    const { grants, unread } = await whoCan(context.api, { dialect, wanted, namespace: within });
    const rows = grants
      .filter(
        ({ names }) => names.length === 0 || wanted.name === '' || names.includes(wanted.name),
      )
      .map(({ subject, binding, role, namespace: where, names }) => {
        const scope = where === '' ? 'everywhere' : where;
        const only = names.length === 0 ? '' : `, only ${names.join(', ')}`;
        const cells = [shown(subject), scope + only, binding, role];
        return element('tr', {}, ...cells.map((text) => element('td', {}, text)));
      });
    const heads = ['Subject', 'Where', 'By binding', 'By role'];
    fill(
      result,
      ...unread.map(({ message }) => element('p', { class: 'warning' }, message)),
      element('p', {}, 'By roles that are bound; other authorizers may allow more.'),
      element(
        'table',
        { class: 'grid' },
        element(
          'thead',
          {},
          element('tr', {}, ...heads.map((head) => element('th', { scope: 'col' }, head))),
        ),
        element('tbody', {}, ...rows),
      ),
      rows.length === 0 && element('p', {}, 'Nobody that could be found.'),
    );
  };
  const submit = element('button', { type: 'submit', class: 'primary' }, 'Find');
  return element(
    'div',
    {},
    form({ class: 'bar' }, () => void ask(), ...attempt.fields, submit),
    result,
  );
}
