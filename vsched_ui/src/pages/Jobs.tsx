// SPDX-License-Identifier: Apache-2.0

import { JobList } from '../components/JobList';
import { Head } from '../components/Section';

export function Jobs() {
  return (
    <>
      <Head title="Jobs">What hosts were asked to measure.</Head>
      <JobList id="jobs" query={{}} />
    </>
  );
}
