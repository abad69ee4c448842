# SPDX-License-Identifier: Apache-2.0

"""The metrics of an agent that is a process of its own, on a real guest."""

import contextlib
import shutil
import signal
import subprocess
import time

from prometheus_client import parser
import requests
from testtools import content

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.metrics import agent as families
from vsched_lib.tests import ports
from vsched_lib.tests import requirements

PATIENCE_S = 4 * agent_fixture.PATIENCE_S


class TestAgentMetrics(agent_case.AgentCase):
    """With a bus on which no collector answers."""

    GUESTS = {
        'reserved': {
            'load': 'burn',
            'vcpus': 1,
            'extra_specs': {'vsched:cpu_runtime_us': '4000'},
        }
    }

    def setUp(self):
        super().setUp()
        self.promtool = shutil.which('promtool')
        if self.promtool is None:
            requirements.require(self, 'prometheus', 'promtool is not in PATH')
        self.reserved = self.vms['reserved']

    def run_agent(self, **options):
        """Run an agent that serves its metrics.

        :returns: the process and the URL of its metrics
        """
        self.agent.stop()
        self.addCleanup(self.agent.start)
        port = ports.reserve()
        self.agent.configure(metrics_bind_port=port, **options)
        self.addCleanup(self.agent.configure)
        log = open(self.agent.config_file + '.log', 'w+b')
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [*self.agent.command, 'run'],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        self.addCleanup(self.end, process)
        self.addDetail('agent', content.content_from_file(log.name))
        return process, 'http://127.0.0.1:%d/metrics' % port

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def scrape(self, url, process, there):
        """Return the first answer that has what is waited for.

        :param there: called with the samples of an answer
        """
        give_up = time.monotonic() + PATIENCE_S
        text = None
        while time.monotonic() < give_up and process.poll() is None:
            with contextlib.suppress(requests.ConnectionError):
                answer = requests.get(url, timeout=PATIENCE_S)
                answer.raise_for_status()
                text = answer.text
                if there(samples(text)):
                    return answer
            agent_guests.pause(0.2)
        return self.fail('not served: %s' % text)

    def check(self, answer):
        """Have promtool check an answer, of which it prints all faults."""
        done = subprocess.run(
            [self.promtool, 'check', 'metrics'],
            input=answer.content,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
        said = (done.stdout + done.stderr).decode()
        self.assertEqual((0, ''), (done.returncode, said))

    def test_each_metric_follows_the_conventions(self):
        process, url = self.run_agent()
        uuid = self.reserved.uuid

        def whole(found):
            return (
                value(found, families.RESERVATIONS, state='applied') == 1
                and value(found, families.RESERVED, instance_uuid=uuid)
                and value(found, families.GUEST, instance_uuid=uuid)
                and value(
                    found, families.CHARGED, instance_uuid=uuid, use='direct'
                )
                and value(found, families.OUTBOX_AGE)
            )

        answer = self.scrape(url, process, whole)
        self.check(answer)
        # The whole list, each with its labels, and nothing else but what is
        # of any process.
        exposed = {}
        for metric in parser.text_string_to_metric_families(answer.text):
            if metric.name.startswith('process_'):
                continue
            for sample in metric.samples:
                exposed.setdefault(metric.name, set()).update(sample.labels)
        self.assertEqual(
            {
                one.name.removesuffix('_total'): {
                    *one.labels,
                    *(['le'] if one.buckets else []),
                }
                for one in families.ALL
            },
            exposed,
        )
        found = samples(answer.text)
        # Threads for its I/O may hold some as well.
        self.assertLessEqual(0.2, value(found, families.ADMITTED))
        self.assertLess(0, value(found, families.OUTBOX_REPORTS))
        process.terminate()
        self.assertEqual(0, process.wait(PATIENCE_S))

    def test_without_instances(self):
        process, url = self.run_agent(metrics_per_instance=False)
        answer = self.scrape(
            url,
            process,
            lambda found: (
                value(found, families.RESERVATIONS, state='applied') == 1
            ),
        )
        self.check(answer)
        self.assertNotIn(self.reserved.uuid, answer.text)
        for one in families.INSTANCES:
            self.assertNotIn(one.name, answer.text)


def samples(text):
    """Return all samples of an answer."""
    return [
        sample
        for metric in parser.text_string_to_metric_families(text)
        for sample in metric.samples
    ]


def value(found, which, **labels):
    """Return the value of a sample; None where there is none."""
    for one in found:
        if one.name == which.name and labels == one.labels:
            return one.value
    return None
