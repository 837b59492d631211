import type { ApiObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { admissionCall, admissionTools, type WriteFixture } from '../testing.ts';
import { factsOf } from './facts.ts';
import { selectorOf, selectsNamespace, selectsObject } from './selectors.ts';

const labeled = (team: string | undefined, name = 'one'): ApiObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', ...(team === undefined ? {} : { labels: { team } }) },
});
const namespace = (name: string, team: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { team } },
});
const ofRed = selectorOf({ matchLabels: { team: 'red' } });

describe('ADM-2: the object selector', () => {
  test.each<[string, ApiObject | undefined, ApiObject | undefined, boolean]>([
    ['the new object', labeled('red'), undefined, true],
    ['the old object of an update', labeled('blue'), labeled('red'), true],
    ['the old object of a deletion', undefined, labeled('red'), true],
    ['neither', labeled('blue'), labeled(undefined), false],
    ['nothing, since there is no object', undefined, undefined, false],
  ])('selects %s', (_, object, old, expected) => {
    const call = admissionCall({
      resource: 'configmaps',
      ...(object === undefined ? {} : { object }),
      ...(old === undefined ? {} : { old }),
    });
    expect(selectsObject(ofRed, call)).toBe(expected);
    expect(selectsObject(selectorOf(undefined), call)).toBe(true);
  });
});

describe('ADM-2: the namespace selector', () => {
  const { objects } = admissionTools({ namespaces: [namespace('default', 'red')] });
  const selects = (write: WriteFixture, selector = ofRed) => {
    const call = admissionCall(write);
    return selectsNamespace(selector, { call, facts: factsOf(call), objects });
  };

  test('looks at the namespace of the request', async () => {
    expect(await selects({ resource: 'configmaps', object: labeled(undefined) })).toBe(true);
    const ofBlue = selectorOf({ matchLabels: { team: 'blue' } });
    expect(await selects({ resource: 'configmaps', object: labeled('blue') }, ofBlue)).toBe(false);
  });

  test('selects what is in no namespace', async () => {
    expect(await selects({ resource: 'nodes', name: 'n' })).toBe(true);
  });

  test('looks at the new labels of a Namespace unless it is deleted', async () => {
    const change = {
      resource: 'namespaces',
      name: 'default',
      object: namespace('default', 'blue'),
    };
    expect(await selects(change)).toBe(false);
    expect(await selects({ ...change, operation: 'DELETE' })).toBe(true);
    expect(await selects({ ...change, operation: 'UPDATE', subresource: 'finalize' })).toBe(true);
  });

  test('is a 404 for a namespace that does not exist, unless it selects all', async () => {
    const write = { resource: 'configmaps', namespace: 'gone', name: 'one' };
    await expect(selects(write)).rejects.toMatchObject({ code: 404 });
    expect(await selects(write, selectorOf({}))).toBe(true);
  });
});
