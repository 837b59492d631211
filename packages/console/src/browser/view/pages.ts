import { apiVersionOf, type Kind, type ObjectName } from '../model/kinds.ts';
import type { ResourceRoute, Route } from '../model/route.ts';
import { hashOf } from '../model/route.ts';
import { accessPage } from './access-page.ts';
import { kindAt, type Page, type PageContext, routeOfKind } from './context.ts';
import { element } from './element.ts';
import { homePage } from './home-page.ts';
import { tablePage } from './table-page.ts';

/** The page of a route. What reads and writes YAML is loaded by the first page that does. */
export async function openPage(context: PageContext, route: Route): Promise<Page> {
  if (route.page === 'home') return homePage(context);
  if (route.page === 'access') return accessPage(context, route);
  const resource = route.page === 'table' ? route.at : route.resource;
  const kind = kindAt(context.discovered(), resource);
  if (kind === undefined) return unservedPage(resource);
  if (route.page === 'table') return tablePage(context, kind, route.at);
  if (route.page === 'create') return createPage(context, kind, route.namespace);
  const { objectPage } = await import('./object-page.ts');
  const namespace = route.namespace === '' ? undefined : route.namespace;
  return objectPage(context, { target: { kind, namespace, name: route.name }, tab: route.tab });
}

function unservedPage({ group, version, resource }: ResourceRoute): Page {
  const name = group === '' ? `${resource}, ${version}` : `${resource} of ${group}/${version}`;
  return {
    title: 'Not served',
    root: element(
      'section',
      { class: 'page' },
      element('h1', {}, 'Not served'),
      element('p', {}, `The server has no ${name} now. As soon as it has, they are shown here.`),
    ),
    isUnserved: true,
    close: () => {},
  };
}

async function createPage(context: PageContext, kind: Kind, namespace: string): Promise<Page> {
  const { createEditor, newObjectText } = await import('./editor.ts');
  const isNamespaced = kind.scope === 'Namespaced';
  const target: ObjectName = {
    kind,
    namespace: isNamespaced ? namespace || 'default' : undefined,
    name: '',
  };
  const text = newObjectText(target, apiVersionOf(kind));
  const editor = createEditor(context, {
    target,
    object: undefined,
    text,
    onSaved: ({ value }) => {
      const { name = '', namespace: within = '' } = Object(value.metadata);
      const resource = routeOfKind(kind);
      const where = { namespace: String(within), name: String(name), tab: 'yaml' } as const;
      context.go({ page: 'object', resource, ...where });
    },
  });
  const at = { ...routeOfKind(kind), namespace, labels: '', fields: '' };
  return {
    title: `New ${kind.kind}`,
    root: element(
      'section',
      { class: 'page' },
      element(
        'header',
        { class: 'heading' },
        element('a', { href: hashOf({ page: 'table', at }) }, kind.resource),
        element('h1', {}, `New ${kind.kind}`),
      ),
      editor.root,
    ),
    hasUnsaved: () => editor.hasUnsaved(),
    close: () => {},
  };
}
