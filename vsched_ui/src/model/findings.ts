// SPDX-License-Identifier: Apache-2.0

// What the doctor of an agent found.

import type { DetailedHost, Finding } from '../api/types';

/**
 * Return the findings that the backends of the host do not have; null if its
 * agent reports none of them.
 *
 * Of a backend that cannot be used there is a finding with the same reasons.
 */
export function furtherFindings(
  host: Pick<DetailedHost, 'backends' | 'findings'>,
): Finding[] | null {
  return (
    host.findings?.filter(
      (finding) =>
        finding.remedy !== '' ||
        !host.backends.some(
          (backend) =>
            !backend.usable &&
            backend.name === finding.subject &&
            backend.reasons.every((reason) => finding.text.includes(reason)),
        ),
    ) ?? null
  );
}
