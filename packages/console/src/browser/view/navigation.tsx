import type { RefObject } from 'preact';
import { useState } from 'preact/hooks';
import { apiVersionOf, isBrowsable, type Kind } from '../model/kinds.ts';
import { type ResourceRoute, type Route, tableRoute } from '../model/route.ts';
import { useApp } from './parts/app.ts';
import { KindMark, Link, TextInput } from './parts/basics.tsx';

/** The pages, and the kinds the server serves by their groups. */
export function Navigation(props: { readonly finder: RefObject<HTMLInputElement | null> }) {
  const { workspace, discovered } = useApp();
  const [wanted, setWanted] = useState('');
  const { route } = workspace;
  const namespace = namespaceIn(route);
  const sections = groupsOf(discovered.kinds, wanted.trim().toLowerCase());
  const [firstKind] = [...sections.values()].flat();
  const goToFirst = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || firstKind === undefined) return;
    event.preventDefault();
    workspace.go(tableRoute(firstKind, namespace));
  };
  const place = (to: Route, label: string) => (
    <Link to={to} class="place-link" aria-current={to.page === route.page ? 'page' : undefined}>
      {label}
    </Link>
  );
  return (
    <nav class="navigation" id="navigation" aria-label="Kinds">
      {place({ page: 'home' }, 'Overview')}
      {place({ page: 'apply' }, 'Apply manifests')}
      {place({ page: 'access', tab: 'mine', namespace: '' }, 'Access')}
      <label class="field">
        <span class="unseen">Find a kind</span>
        <TextInput
          isSearch
          place={props.finder}
          placeholder="Find a kind  /"
          value={wanted}
          onText={setWanted}
          onKeyDown={goToFirst}
        />
      </label>
      {[...sections].map(([apiVersion, kinds]) => (
        <section key={apiVersion}>
          <h2>{apiVersion}</h2>
          <ul>
            {kinds.map((kind) => (
              <li key={kind.resource}>
                <KindLink {...{ kind, namespace, route }} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function KindLink(props: {
  readonly kind: Kind;
  readonly namespace: string;
  readonly route: Route;
}) {
  const { kind, namespace, route } = props;
  const isCurrent = isSame(kind, resourceIn(route));
  return (
    <Link
      to={tableRoute(kind, namespace)}
      aria-current={isCurrent ? 'page' : undefined}
      title={[kind.kind, ...kind.shortNames].join(', ')}
    >
      <KindMark kind={kind.kind} group={kind.group} />
      {kind.resource}
    </Link>
  );
}

function groupsOf(kinds: readonly Kind[], wanted: string): ReadonlyMap<string, Kind[]> {
  const groups = new Map<string, Kind[]>();
  for (const kind of kinds) {
    if (!isBrowsable(kind) || !isWanted(kind, wanted)) continue;
    const apiVersion = apiVersionOf(kind);
    const group = groups.get(apiVersion);
    if (group === undefined) groups.set(apiVersion, [kind]);
    else group.push(kind);
  }
  return groups;
}

/** By any of the names people have for it. */
function isWanted(kind: Kind, wanted: string): boolean {
  if (wanted === '') return true;
  const names = [kind.resource, kind.kind, kind.group, ...kind.shortNames, ...kind.categories];
  return names.some((name) => name.toLowerCase().includes(wanted));
}

function namespaceIn(route: Route): string {
  if (route.page === 'table') return route.at.namespace;
  return 'namespace' in route ? route.namespace : '';
}

function resourceIn(route: Route): ResourceRoute | undefined {
  if (route.page === 'table') return route.at;
  return 'resource' in route ? route.resource : undefined;
}

function isSame(kind: Kind, resource: ResourceRoute | undefined): boolean {
  return (
    resource !== undefined &&
    resource.group === kind.group &&
    resource.version === kind.version &&
    resource.resource === kind.resource
  );
}
