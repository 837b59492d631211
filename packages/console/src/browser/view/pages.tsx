import { useRef } from 'preact/hooks';
import { kindAt } from '../model/discovery.ts';
import type { Kind } from '../model/kinds.ts';
import type { ResourceRoute, Route } from '../model/route.ts';
import { AccessPage } from './access/access-page.tsx';
import { OverviewPage } from './overview/overview-page.tsx';
import { useApp, useModule, usePage } from './parts/app.ts';
import { TablePage } from './table/table-page.tsx';

/** What reads and writes YAML is loaded by the first page that needs it. */
const loadObjectPage = () => import('./object/object-page.tsx');
const loadCreatePage = () => import('./edit/create-page.tsx');
const loadApplyPage = () => import('./edit/apply-page.tsx');

/** The page of the current route. */
export function Pages() {
  const { workspace } = useApp();
  const { route } = workspace;
  if (route.page === 'home') return <OverviewPage />;
  if (route.page === 'access') {
    return <AccessPage key={route.tab} tab={route.tab} namespace={route.namespace} />;
  }
  if (route.page === 'apply') return <Loaded load={loadApplyPage} draw={(m) => <m.ApplyPage />} />;
  return <ResourcePage key={keyOf(route)} route={route} />;
}

type ResourcePageRoute = Extract<Route, { page: 'table' | 'object' | 'create' }>;

/** Pages of one key are one page: its tabs change, and what it has read stays. */
function keyOf(route: ResourcePageRoute): string {
  const { page } = route;
  if (page === 'table') return JSON.stringify(route);
  const { group, version, resource } = route.resource;
  const name = page === 'object' ? route.name : '';
  return JSON.stringify([page, group, version, resource, route.namespace, name]);
}

function ResourcePage(props: { readonly route: ResourcePageRoute }) {
  const { discovered } = useApp();
  const { route } = props;
  const resource = route.page === 'table' ? route.at : route.resource;
  const last = useRef<Kind | undefined>(undefined);
  // A kind that goes while its page is open leaves the page, and the text in it, as they are.
  const kind = kindAt(discovered, resource) ?? last.current;
  last.current = kind;
  if (kind === undefined) return <Unserved resource={resource} />;
  if (route.page === 'table') return <TablePage kind={kind} at={route.at} />;
  if (route.page === 'create') {
    const { namespace } = route;
    return <Loaded load={loadCreatePage} draw={(m) => <m.CreatePage {...{ kind, namespace }} />} />;
  }
  const namespace = route.namespace === '' ? undefined : route.namespace;
  const target = { kind, namespace, name: route.name };
  return (
    <Loaded load={loadObjectPage} draw={(m) => <m.ObjectPage target={target} tab={route.tab} />} />
  );
}

function Loaded<T>(props: {
  readonly load: () => Promise<T>;
  readonly draw: (module: T) => preact.JSX.Element;
}) {
  const module = useModule(props.load);
  if (module === undefined) return <p role="status">Loading…</p>;
  return props.draw(module);
}

function Unserved(props: { readonly resource: ResourceRoute }) {
  const { group, version, resource } = props.resource;
  const name = group === '' ? `${resource}, ${version}` : `${resource} of ${group}/${version}`;
  usePage('Not served');
  return (
    <section class="page">
      <h1>Not served</h1>
      <p>The server does not serve {name}. This page opens when it does.</p>
    </section>
  );
}
