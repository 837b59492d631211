import { isObject } from '@wheelhouse/machinery/browser';
import { textOf } from '../model/failure.ts';
import { isBrowsable } from '../model/kinds.ts';
import { hashOf } from '../model/route.ts';
import { type Page, type PageContext, routeOfKind } from './context.ts';
import { element, fill } from './element.ts';

/** What the server is, and where to go. */
export function homePage(context: PageContext): Page {
  const { kinds } = context.discovered();
  const version = element('p');
  context.api.json({ path: '/version' }).then(
    (answer) =>
      isObject(answer) && fill(version, `The server speaks ${textOf(answer, 'gitVersion')}.`),
    () => {},
  );
  const places = ['namespaces', 'pods', 'deployments', 'configmaps', 'events'].flatMap(
    (resource) => {
      const kind = kinds.find((one) => one.resource === resource && one.preferred);
      if (kind === undefined) return [];
      const at = { ...routeOfKind(kind), namespace: '', labels: '', fields: '' };
      return [element('li', {}, element('a', { href: hashOf({ page: 'table', at }) }, resource))];
    },
  );
  const access = hashOf({ page: 'access', tab: 'mine', namespace: '' });
  return {
    title: 'Wheelhouse',
    root: element(
      'section',
      { class: 'page' },
      element('header', { class: 'heading' }, element('h1', {}, 'Wheelhouse')),
      version,
      element('p', {}, `It serves ${kinds.filter(isBrowsable).length} kinds of objects.`),
      element(
        'ul',
        {},
        ...places,
        element('li', {}, element('a', { href: access }, 'who may do what')),
      ),
      element(
        'p',
        { class: 'hint' },
        element('kbd', {}, '/'),
        ' finds a kind, ',
        element('kbd', {}, 'g'),
        ' goes home, ',
        element('kbd', {}, 'c'),
        ' creates, ',
        element('kbd', {}, 'e'),
        ' edits.',
      ),
    ),
    close: () => {},
  };
}
