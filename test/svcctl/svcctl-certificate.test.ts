import { certificateSigningRequest } from '@wheelhouse/kinds/testing';
import type { CertificateSigningRequest } from '@wheelhouse/kinds/types/certificates/v1';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import type { ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: certificate, dialect %s', async (dialectName) => {
  const dialect = dialectOf(dialectName);
  const collection = `/apis/${dialect.group('certificates')}/v1/certificatesigningrequests`;
  const type = `certificatesigningrequest.${dialect.group('certificates')}`;
  const request = async (name: string) => {
    const example = certificateSigningRequest(dialect).example?.() ?? {};
    const { status, text } = await server.post(collection, { ...example, metadata: { name } });
    expect(status, text).toBe(201);
  };
  const decisionOf = async (name: string) => {
    const { body } = await server.get<ResponseOf<CertificateSigningRequest>>(
      `${collection}/${name}`,
    );
    return body.status.conditions?.map((condition) => `${condition.type} ${condition.reason}`);
  };
  const server = await withServer({ dialect: dialectName });
  const home = untilEnd(svcctlFor(server));

  test('CLIENT-1: requests are approved or denied, and only once', async () => {
    await request('one');
    await request('two');
    expect((await home.run('certificate approve one')).out).toBe(`${type}/one approved\n`);
    expect(await decisionOf('one')).toEqual(['Approved SvcctlApprove']);
    expect((await home.run('certificate approve csr/one')).code).toBe(0);
    expect(await decisionOf('one')).toHaveLength(1);
    expect((await home.run('certificate deny two')).out).toBe(`${type}/two denied\n`);
    expect(await home.run('certificate approve two')).toEqual({
      code: 1,
      out: '',
      err: 'error: certificate signing request "two" is already Denied\n',
    });
  });

  test('CLIENT-1: requests that cannot be decided are reported', async () => {
    expect((await home.run('certificate deny')).err).toBe(
      'error: one or more CSRs must be specified as <name> or -f <filename>\n',
    );
    expect((await home.run('certificate approve ns/default')).err).toBe(
      'error: can only handle CertificateSigningRequest objects, got Namespace\n',
    );
    await request('three');
    const refused = await home.run('certificate approve three --as=nobody');
    expect(refused.err).toContain('Error from server (Forbidden)');
    expect(await decisionOf('three')).toBeUndefined();
  });
});
