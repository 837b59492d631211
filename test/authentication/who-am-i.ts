import type { SelfSubjectReview } from '@wheelhouse/kinds/types/authentication/v1';
import { eventually, type ResponseOf, type TestServer } from '../support/harness.ts';

const group = 'authentication.svc.io';

/** Asks the server for the user of a token. */
export const whoAmI = (server: Pick<TestServer, 'post'>, token: string | undefined) =>
  server.post<ResponseOf<SelfSubjectReview>>(
    `/apis/${group}/v1/selfsubjectreviews`,
    { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' },
    { token },
  );

/** The user of a token, once the server has found the token's provider. */
export async function userOfToken(
  server: Pick<TestServer, 'post'>,
  token: string,
): Promise<ResponseOf<SelfSubjectReview>['status']['userInfo']> {
  const answer = await eventually(async () => {
    const reply = await whoAmI(server, token);
    return reply.status === 201 ? reply : undefined;
  }, 'the token to be accepted');
  return answer.body.status.userInfo;
}
