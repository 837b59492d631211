import type { CustomResourceDefinition } from '@wheelhouse/kinds/types/apiextensions/v1';
import { describe, expect, test } from 'vitest';
import { eventually, type ResponseOf } from '../support/harness.ts';
import { issue } from '../support/issued-certificate.ts';
import { withServer } from '../support/with-server.ts';
import { causesOf, conditionOf, definitionOf, definitions, redefine } from './custom-kinds.ts';

const server = await withServer();

const annotation = 'api-approved.svc.io';
const policy = 'https://github.com/kubernetes/enhancements/pull/1111';
const must = `protected groups must have approval annotation "${annotation}"`;
const conformant = 'SvcAPIApprovalPolicyConformant';

const find = (name: string, type: string) => async () => {
  const { body } = await server.get<ResponseOf<CustomResourceDefinition>>(`${definitions}/${name}`);
  return body.status?.conditions?.find((condition) => condition.type === type);
};

describe('approval', () => {
  const approvals: readonly [plural: string, text: string, expected: object][] = [
    [
      'ours',
      'https://example.com/approval/1',
      {
        status: 'True',
        reason: 'ApprovedAnnotation',
        message: 'approved in https://example.com/approval/1',
      },
    ],
    [
      'tries',
      'unapproved, a "trial"',
      {
        status: 'False',
        reason: 'UnapprovedAnnotation',
        message: 'not approved: "unapproved, a \\"trial\\""',
      },
    ],
  ];
  test.each(approvals)(
    'CRD-1: the status reports the approval of %s',
    async (plural, text, expected) => {
      const body = definitionOf({ group: 'approval.svc.io', plural, kind: `K${plural}` });
      body.metadata.annotations = { [annotation]: text };
      expect((await server.post(definitions, body)).status).toBe(201);
      const name = `${plural}.approval.svc.io`;
      expect(await eventually(find(name, conformant))).toMatchObject(expected);
      const { body: now } = await server.get<ResponseOf<CustomResourceDefinition>>(
        `${definitions}/${name}`,
      );
      expect(now.status.conditions.map((condition) => condition.type)).toEqual([
        conformant,
        'NamesAccepted',
        'Established',
      ]);
    },
  );

  test('CRD-1: a protected group needs an approval annotation', async () => {
    const body = definitionOf({ group: 'approval.svc.io', plural: 'lones', kind: 'Lone' });
    const missing = await server.post(definitions, body);
    expect(missing.status).toBe(422);
    expect(causesOf(missing)).toEqual([
      `metadata.annotations[${annotation}]: Required value: ${must}, see ${policy}`,
    ]);
  });

  test('CRD-1: other groups have no approval condition', async () => {
    const group = 'approval.example.com';
    const body = definitionOf({ group, plural: 'frees', kind: 'Free' });
    await server.post(definitions, body);
    await eventually(
      async () => (await find(`frees.${group}`, 'Established')())?.status === 'True',
    );
    expect(await find(`frees.${group}`, conformant)()).toBeUndefined();
  });
});

describe('authorities of a conversion webhook', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const conversion = (bundle: string) => ({
    strategy: 'Webhook',
    webhook: {
      conversionReviewVersions: ['v1'],
      clientConfig: { url: 'https://127.0.0.1:1/convert', caBundle: base64(bundle) },
    },
  });
  const authority = async () =>
    (await issue({ subject: 'CN=ca', authority: true })).certificate.toString('pem');

  test('CRD-4: a definition is established once its bundle is readable', async () => {
    const group = 'bundles.example.com';
    const more = { conversion: conversion('no certificate') };
    const body = definitionOf({ group, plural: 'seals', kind: 'Seal', more });
    expect((await server.post(definitions, body)).status).toBe(201);
    expect(await eventually(find(`seals.${group}`, 'Established'))).toMatchObject({
      status: 'False',
      reason: 'InvalidCABundle',
      message: 'The conversion webhook CABundle is invalid',
    });
    expect((await server.get(`/apis/${group}/v1/namespaces/default/seals`)).status).toBe(404);
    const good = await authority();
    const mended = await redefine(server, `seals.${group}`, (spec) => {
      spec.conversion = conversion(good);
    });
    expect(mended.status).toBe(200);
    const established = await eventually(async () => {
      const { body: now } = await server.get(`${definitions}/seals.${group}`);
      const condition = conditionOf(now, 'Established');
      return condition?.startsWith('True') ? condition : undefined;
    });
    expect(established).toBe('True InitialNamesAccepted');
    expect((await server.get(`/apis/${group}/v1/namespaces/default/seals`)).status).toBe(200);
  });

  const block = (type: string, body: string) =>
    `-----BEGIN ${type}-----\n${body}\n-----END ${type}-----\n`;
  const faults: readonly [bundle: string, problem: string][] = [
    ['abc', 'unable to parse bytes as PEM block'],
    [block('CERTIFICATE', 'YW?Jj'), 'unable to parse bytes as PEM block'],
    [block('CERTIFICATE', 'YWJj'), 'failed to parse certificate: x509: malformed certificate'],
    [block('KEY', 'YWJj'), 'no valid certificate authority data seen'],
    [`${block('KEY', 'YWJj')}\n`, 'unable to parse bytes as PEM block'],
  ];
  test.each([
    ['lines', block('CERTIFICATE', `${`${':'.repeat(60)}\n`.repeat(100)}!`)],
    ['beginnings', `${'-----BEGIN A-----'.repeat(60_000)}-----END B-----`],
  ])('CRD-4: a bundle of many %s is read but once', async (sort, bundle) => {
    const group = `${sort}.example.com`;
    const definition = definitionOf({ group, plural: 'seals', kind: 'Seal' });
    definition.spec.conversion = conversion(bundle);
    await server.post(definitions, definition);
    const established = find(`seals.${group}`, 'Established');
    await eventually(async () => (await established())?.reason === 'InvalidCABundle');
  });

  test('CRD-4: an established definition refuses an unreadable bundle', async () => {
    const group = 'served-bundles.example.com';
    await server.post(definitions, definitionOf({ group, plural: 'seals', kind: 'Seal' }));
    const name = `seals.${group}`;
    await eventually(async () => (await find(name, 'Established')())?.status === 'True');
    for (const [bundle, problem] of faults) {
      const answer = await redefine(server, name, (spec) => {
        spec.conversion = conversion(bundle);
      });
      expect(answer.status).toBe(422);
      expect(causesOf(answer)).toEqual([
        'spec.conversion.webhookClientConfig.caBundle: ' +
          `Invalid value: ${JSON.stringify(base64(bundle))}: ` +
          `unable to load root certificates: ${problem}`,
      ]);
    }
    const mixed = `${block('CERTIFICATE', 'YWJj')}${await authority()}`;
    const answer = await redefine(server, name, (spec) => {
      spec.conversion = conversion(mixed);
    });
    expect(answer.status).toBe(200);
  });
});
