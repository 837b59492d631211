import { apiVersionOf, isBrowsable, type Kind } from '../model/kinds.ts';
import { hashOf, type ResourceRoute } from '../model/route.ts';
import { routeOfKind } from './context.ts';
import { element, fill, labelled } from './element.ts';

/** The kinds the server serves, by their groups. */
export interface Navigation {
  readonly root: HTMLElement;
  /** Puts the keyboard into the field that finds kinds. */
  focus(): void;
  show(kinds: readonly Kind[], current: ResourceRoute | undefined, namespace: string): void;
}

/** An empty navigation. */
export function createNavigation(): Navigation {
  const find = element('input', {
    type: 'search',
    placeholder: 'pods, deploy, apps…',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const list = element('div', { class: 'kinds' });
  let last: Parameters<Navigation['show']> = [[], undefined, ''];
  const draw = (): void => fill(list, ...groupsOf(last, find.value.trim().toLowerCase()));
  find.addEventListener('input', draw);
  find.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    list.querySelector('a')?.click();
  });
  const access = element(
    'a',
    { href: hashOf({ page: 'access', tab: 'mine', namespace: '' }) },
    'Who may do what',
  );
  return {
    root: element(
      'nav',
      { class: 'navigation', 'aria-label': 'Kinds' },
      access,
      labelled('Find a kind', find),
      list,
    ),
    focus: () => find.focus(),
    show(...shown) {
      last = shown;
      draw();
    },
  };
}

function groupsOf(
  [kinds, current, namespace]: Parameters<Navigation['show']>,
  wanted: string,
): HTMLElement[] {
  const groups = new Map<string, HTMLElement[]>();
  for (const kind of kinds) {
    if (!isBrowsable(kind) || !isWanted(kind, wanted)) continue;
    const apiVersion = apiVersionOf(kind);
    groups.set(apiVersion, [...(groups.get(apiVersion) ?? []), linkTo(kind, current, namespace)]);
  }
  return [...groups].map(([apiVersion, links]) =>
    element(
      'section',
      {},
      element('h2', {}, apiVersion),
      element('ul', {}, ...links.map((link) => element('li', {}, link))),
    ),
  );
}

function linkTo(kind: Kind, current: ResourceRoute | undefined, namespace: string): HTMLElement {
  const route = routeOfKind(kind);
  const isCurrent =
    current !== undefined &&
    current.group === kind.group &&
    current.version === kind.version &&
    current.resource === kind.resource;
  const within = kind.scope === 'Namespaced' ? namespace : '';
  const at = { ...route, namespace: within, labels: '', fields: '' };
  const attributes = {
    href: hashOf({ page: 'table', at }),
    'aria-current': isCurrent ? 'page' : undefined,
    title: [kind.kind, ...kind.shortNames].join(', '),
  };
  return element('a', attributes, kind.resource);
}

/** By any of the names people have for it. */
function isWanted(kind: Kind, wanted: string): boolean {
  if (wanted === '') return true;
  const names = [kind.resource, kind.kind, kind.group, ...kind.shortNames, ...kind.categories];
  return names.some((name) => name.toLowerCase().includes(wanted));
}
