// SPDX-License-Identifier: Apache-2.0

import {
  Alert,
  Button,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  TextInput,
  Title,
} from '@patternfly/react-core';
import { useState } from 'react';

/** Ask for a token; it is kept until the tab of the browser is closed. */
export function SignIn({
  refused,
  problem,
  accept,
}: {
  /** Whether a token was given that is not valid, or not any more. */
  refused: boolean;
  problem: string | null;
  accept: (token: string) => void;
}) {
  const [token, setToken] = useState('');
  return (
    <main className="vs-signin" aria-labelledby="signin-title">
      <div className="vs-signin__card">
        <Title headingLevel="h1" size="xl" id="signin-title">
          vsched
        </Title>
        <p className="vs-note">
          CPU time as a guarantee. This service asks keystone who you are.
        </p>
        {problem !== null && <Alert isInline variant="danger" title={problem} />}
        {refused && problem === null && (
          <Alert
            isInline
            variant="warning"
            title="The token is not valid, or has expired"
          />
        )}
        <Form
          onSubmit={(event) => {
            event.preventDefault();
            if (token.trim() !== '') {
              accept(token.trim());
            }
          }}
        >
          <FormGroup label="Token" fieldId="token" isRequired>
            <TextInput
              id="token"
              type="password"
              autoComplete="off"
              isRequired
              value={token}
              onChange={(_, value) => setToken(value)}
              aria-describedby="token-hint"
            />
            <FormHelperText>
              <HelperText id="token-hint">
                <HelperTextItem>
                  “openstack token issue -f value -c id” prints one. The role
                  reader on a project shows the servers of that project; the
                  role reader on the system, service or admin shows
                  everything. Changing needs admin.
                </HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
          <Button type="submit" variant="primary" isDisabled={token.trim() === ''}>
            Sign in
          </Button>
        </Form>
      </div>
    </main>
  );
}
